import MediaTools

@main
enum Main {
    static func main() async {
        let arguments = CommandLine.arguments
        if arguments.count > 1, arguments[1] == MediaChild.argument { MediaChild.run(roots: Array(arguments[2...])) }
    }
}

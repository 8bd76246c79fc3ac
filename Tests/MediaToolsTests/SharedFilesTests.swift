import Foundation
import Synchronization
import Testing

@testable import MediaTools

/// Files from comparable systems, through one real child each. Skipped where the machine does not have them.
@Suite(.enabled(if: sharedFiles != nil)) struct SharedFilesTests {
    static let folder = sharedFiles ?? ""

    private func process(_ names: [String], _ check: (String, MediaAnswer) throws -> Void) async throws {
        let scratch = try Scratch()
        let peak = Mutex(0)
        var probe = MediaChildPool.Probe()
        probe.peakKiB = { kib in peak.withLock { $0 = max($0, kib) } }
        let configuration = MediaChildPool.Configuration(
            executable: workerProgram, roots: [scratch.path, Self.folder])
        let pool = MediaChildPool(configuration, probe: probe)
        for name in names {
            let file = Self.folder + "/" + name
            guard FileManager.default.fileExists(atPath: file) else { continue }
            try check(name, try await pool.process(scratch.request(file)))
        }
        await pool.shutdown()
        #expect(peak.withLock { $0 } <= 256 << 10)
    }

    @Test("images: size upright and number of variants, or the reason")
    func images() async throws {
        let expected: [String: String] = [
            "exif_Landscape_1.jpg": "1800x1200 4", "exif_Landscape_3.jpg": "1800x1200 4",
            "exif_Landscape_6.jpg": "1800x1200 4", "exif_Landscape_8.jpg": "1800x1200 4",
            "exif_Portrait_6.jpg": "1200x1800 4", "gen_16bit_rgb.png": "320x240 1",
            "gen_alpha_1200x800.webp": "1200x800 4",
            "gen_cmyk.jpg": "900x600 3", "gen_header_claims_100000x100000.png": "tooManyPixels",
            "gen_html_named.png": "unsupportedType", "gen_huge_30000x30000_1bit.png": "tooManyPixels",
            "gen_jpeg_with_trailing_html.jpg": "1800x1200 4", "gen_size_1000x1000.png": "1000x1000 3",
            "gen_size_1001x667.png": "1001x667 4", "gen_size_10x1200.png": "10x1200 4", "gen_size_1x1.png": "1x1 0",
            "gen_size_244x155.png": "244x155 0", "gen_size_245x156.png": "245x156 0",
            "gen_size_246x157.png": "246x157 1",
            "gen_size_3000x1.png": "3000x1 4", "gen_size_500x500.png": "500x500 1", "gen_size_501x400.png": "501x400 2",
            "gen_size_750x10.png": "750x10 2", "gen_size_751x750.png": "751x750 3",
            "gen_truncated_60pct.jpg": "truncated",
            "libheif_example.heic": "1280x854 4", "pillow_broken.png": "unsupportedType",
            "pillow_decompression_bomb.gif": "notAnImage", "pillow_exif_gps.jpg": "8x8 0",
            "pillow_hopper.avif": "128x128 0",
            "pillow_hopper_orientation_6.webp": "128x128 0", "pillow_iss634.gif": "245x245 1",
            "pillow_iss634.webp": "245x245 1", "pillow_png_decompression_dos.png": "1x1 0",
        ]
        try await process(expected.keys.sorted().map { "images/" + $0 }) { name, answer in
            let result = answer.image.map { "\($0.width)x\($0.height) \($0.variants.count)" }
            #expect(result ?? answer.rejection?.rawValue == expected[String(name.dropFirst(7))], "\(name)")
        }
        try await process(
            ["externalTest.svg", "gen_script.svg", "useDosTest.svg", "xlinkLaughsTest.svg"].map { "svg/" + $0 }
        ) { name, answer in
            #expect(answer.rejection == .unsupportedType, "\(name)")
        }
    }

    @Test("documents: pages and whether there is text, or the reason")
    func documents() async throws {
        let expected: [String: String] = [
            "resumes/John_Doe_ClassicTheme_CV.pdf": "2 extracted", "resumes/John_Doe_EmberTheme_CV.pdf": "2 extracted",
            "resumes/John_Doe_ModerncvTheme_CV.pdf": "3 extracted",
            "resumes/rendercv_classic_minimal.pdf": "1 extracted",
            "resumes/gen_John_Doe_CV.docx": "docx extracted", "pdf/gen_1500_blank_pages.pdf": "tooManyPages",
            "pdf/gen_empty_0_bytes.pdf": "empty", "pdf/gen_encrypted_aes256_owner_only.pdf": "2 extracted",
            "pdf/gen_encrypted_aes256_userpw_openpassword.pdf": "encrypted",
            "pdf/gen_flate_stream_inflates_300MiB.pdf": "1 none", "pdf/gen_header_only.pdf": "broken",
            "pdf/gen_openaction_javascript.pdf": "2 extracted", "pdf/gen_resume_no_text_layer.pdf": "1 none",
            "pdf/gen_truncated_50pct.pdf": "broken", "pdf/pdfjs_copy_paste_ligatures.pdf": "1 extracted",
            "pdf/pdfjs_empty_protected.pdf": "1 none", "pdf/pdfjs_poppler-395-0-fuzzed.pdf": "broken",
            "pdf/pypdf_google-doc-document.pdf": "1 extracted", "pdf/pypdf_multicolumn.pdf": "3 extracted",
            "docs/gen_docx_inflates_200MiB.docx": "inflates", "docs/gen_docx_renamed_as.pdf": "docx extracted",
            "docs/gen_docx_xxe.docx": "unsafe", "docs/pythondocx_having-images.docx": "docx none",
            "docs/tv_valid_word_document.docx": "docx extracted",
            "docs/tv_valid_legacy_word_document.doc": "doc extracted",
            "docs/tv_invalid_plain_text_file.txt": "txt extracted",
            "docs/tv_zip_file_pretending_to_be_a_pdf.pdf": "unsupportedType",
        ]
        try await process(expected.keys.sorted()) { name, answer in
            let result = answer.document.map { document in
                (document.pages.map(String.init) ?? document.type.rawValue) + " " + document.textOutcome.rawValue
            }
            #expect(result ?? answer.rejection?.rawValue == expected[name], "\(name)")
            if answer.document?.textOutcome == .extracted, name.contains("John_Doe") {
                #expect(answer.document?.text.contains("John Doe") == true)
            }
            // As catdoc and antiword, two other readers, have it.
            if name.hasSuffix("word_document.doc") {
                let words = answer.document?.text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
                #expect(
                    words
                        == "This is a test additional document for the Teaching Vacancies job listing upload flow.")
            }
        }
    }

    @Test("the text of PDFs has the words of pdftotext in their order", .enabled(if: pdftotext != nil))
    func reference() async throws {
        let good = [
            "resumes/John_Doe_ClassicTheme_CV.pdf", "resumes/John_Doe_EmberTheme_CV.pdf",
            "resumes/John_Doe_ModerncvTheme_CV.pdf", "resumes/rendercv_classic_minimal.pdf",
            "pdf/gen_encrypted_aes256_owner_only.pdf", "pdf/gen_openaction_javascript.pdf",
            "pdf/pdfjs_copy_paste_ligatures.pdf", "pdf/pypdf_google-doc-document.pdf", "pdf/pypdf_multicolumn.pdf",
            "pdf/gen_resume_no_text_layer.pdf", "pdf/pdfjs_empty_protected.pdf",
        ]
        try await process(good) { name, answer in
            let ours = try #require(answer.document).text
            var theirs = try run(try #require(pdftotext), [Self.folder + "/" + name, "-"])
            // The one difference: a word divided by a soft hyphen is put together by us, and left in two by pdftotext.
            theirs = theirs.replacing("\u{AD}\n", with: "")
            #expect(words(ours) == words(theirs), "\(name)")
        }
    }

    private func words(_ text: String) -> [String] { text.split(whereSeparator: \.isWhitespace).map(String.init) }

    private func run(_ program: String, _ arguments: [String]) throws -> String {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.standardOutput = output
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: data, as: UTF8.self)
    }
}

/// The reference for the text of PDFs, when this machine has it: poppler-utils, which `make bench` installs.
private let pdftotext: String? = {
    let path = "/usr/bin/pdftotext"
    if FileManager.default.isExecutableFile(atPath: path) { return path }
    print("SKIPPED: pdftotext is not there, so the text of PDFs is compared with nothing.")
    return nil
}()

/// The list of skills. To add one: a line, sorted into its group; a word that people also mean otherwise gets a mark.
/// A test holds every line against the search's normaliser: what that keeps apart is apart here too.
enum SkillData {
    static let all = [languages, web, data, operations, tools, business, trades]

    static let languages = """
        C | ansi c, c99 | case list
        C++ | cpp, c plus plus
        C# | csharp, c sharp
        F# | fsharp, f sharp
        Objective-C | objc, objective c++
        Go | golang, go lang | case list
        R | r language, rstudio, r studio | case list
        Java | java se, java ee, jakarta ee, j2ee
        JavaScript | java script, ecmascript, es6
        TypeScript | type script
        Python | python 3, python3
        Ruby | | case
        Rust | rustlang | case
        Swift | swiftui, swift ui | case list
        Kotlin |
        Scala | | case
        PHP | php 7, php 8
        Perl |
        Haskell |
        Elixir | | case
        Erlang |
        Clojure | clojurescript
        OCaml |
        Lua |
        Julia | | case list
        Dart | | case list
        Groovy | | case
        Fortran |
        COBOL |
        MATLAB | simulink
        Assembly | assembler, x86 assembly, arm assembly | case list
        Visual Basic | vb6, vba, visual basic for applications
        VB.NET |
        ABAP | sap abap
        Delphi | object pascal
        Prolog |
        Solidity |
        Bash | shell scripting, shell script, unix shell
        PowerShell | power shell
        VHDL |
        Verilog | systemverilog, system verilog
        SQL |
        T-SQL | tsql, transact sql
        PL/SQL | plsql
        HTML | html5, xhtml
        CSS | css3
        XML | xslt, xsd
        WebAssembly | wasm
        """

    static let web = """
        .NET | dotnet, dot net, .net core, .net framework
        ASP.NET | aspnet, asp net core, asp net mvc
        Entity Framework | ef core
        Blazor |
        WPF |
        Node.js | nodejs
        Express.js | expressjs
        NestJS | nest js
        Next.js | nextjs
        Nuxt.js | nuxtjs, nuxt
        Deno | | case
        React | reactjs, react js | case
        React Native |
        Redux |
        Angular | angularjs, angular js
        Vue.js | vue, vuejs
        Svelte | sveltekit
        Ember.js | emberjs
        jQuery |
        Gatsby | | case list
        Astro | | case list
        Three.js | threejs
        D3.js | d3
        Webpack |
        Vite | | case list
        Babel | | case list
        Sass | scss
        Less | | case list
        Tailwind CSS | tailwind, tailwindcss
        Bootstrap | | case
        Material UI | mui
        Django | django rest framework
        Flask | | case
        FastAPI | fast api
        SQLAlchemy |
        Celery | | case list
        Spring | spring framework | case list
        Spring Boot | springboot
        Hibernate | | case
        JPA |
        Quarkus |
        Micronaut |
        Maven | apache maven
        Gradle |
        Ruby on Rails | rails, ror
        Sinatra | | case list
        Laravel |
        Symfony |
        CodeIgniter |
        WordPress | word press
        Drupal |
        TYPO3 |
        Joomla |
        Magento |
        Shopify |
        Strapi |
        Phoenix | phoenix framework, phoenix liveview | case list
        Vapor | | case list
        Flutter | | case
        Ionic | | case list
        Xamarin |
        Jetpack Compose |
        Android | android sdk, android studio
        iOS | | case
        UIKit |
        Xcode |
        Electron | electron js | case list
        Unity | unity3d | case list
        Unreal Engine | unreal
        Godot |
        OpenGL |
        Vulkan |
        WebGL |
        Qt | qml | case
        REST | rest api, restful, restful api, rest apis | case
        GraphQL |
        gRPC |
        SOAP | | case
        WebSocket | web sockets
        Socket.IO |
        OAuth | oauth2, oauth 2.0
        OpenAPI | swagger
        Microservices | micro services, microservice
        Responsive Design | responsive web design
        Web Accessibility | wcag
        """

    static let data = """
        PostgreSQL | postgres, psql
        MySQL | my sql
        MariaDB |
        SQLite |
        Oracle | oracle db, oracle database | case
        SQL Server | microsoft sql server, mssql, ms sql
        DB2 | ibm db2
        MongoDB | mongo
        Cassandra | apache cassandra | case
        Redis |
        Memcached |
        Elasticsearch | elastic search
        OpenSearch |
        Solr | apache solr
        Neo4j |
        DynamoDB |
        CouchDB |
        ClickHouse |
        InfluxDB |
        Firebase | firestore
        Supabase |
        BigQuery | google bigquery
        Snowflake | | case
        Redshift | amazon redshift
        Databricks |
        Hadoop | apache hadoop, hdfs
        Hive | apache hive | case list
        Spark | apache spark, pyspark | case list
        Flink | apache flink
        Kafka | apache kafka
        RabbitMQ |
        ActiveMQ |
        NATS | | case list
        Airflow | apache airflow | case
        dbt | | case list
        ETL | | case
        Data Warehousing | data warehouse, dwh
        Data Modeling | data modelling, datenmodellierung
        Data Engineering |
        Data Analysis | data analytics, datenanalyse, analyse de données, análisis de datos, analisi dei dati
        Data Visualization | data visualisation
        Data Science |
        Machine Learning | maschinelles lernen, apprentissage automatique, aprendizaje automático
        Deep Learning |
        Computer Vision | image processing, bildverarbeitung
        NLP | natural language processing | case
        Reinforcement Learning |
        Large Language Models | llm, llms
        PyTorch |
        TensorFlow |
        Keras |
        scikit-learn | sklearn
        pandas | | list
        NumPy |
        SciPy |
        Matplotlib |
        Jupyter | jupyter notebook
        OpenCV |
        Hugging Face | huggingface
        CUDA |
        ggplot2 |
        tidyverse |
        Tableau | | case
        Power BI | powerbi
        Looker | looker studio
        Qlik | qlikview, qlik sense
        Grafana |
        Kibana | elk stack
        SAS | | case list
        SPSS |
        Stata |
        Statistics | statistical analysis, statistik, statistiques, estadística
        A/B Testing | ab testing
        """

    static let operations = """
        Linux | gnu linux, redhat, rhel, debian, ubuntu, centos
        Unix | | case
        Windows Server |
        macOS | mac os
        Docker | docker compose
        Kubernetes | k8s
        Helm | helm charts | case
        OpenShift |
        Podman |
        Terraform |
        Ansible |
        Puppet | | case list
        Chef | | case list
        Vagrant | | case list
        AWS | amazon web services, ec2, aws lambda
        Azure | microsoft azure | case
        Google Cloud | gcp, google cloud platform
        DigitalOcean |
        Heroku |
        OpenStack |
        VMware | vsphere
        Hyper-V |
        Serverless |
        CI/CD | continuous integration, continuous delivery, continuous deployment
        Jenkins |
        GitHub Actions |
        GitLab CI | gitlab ci/cd
        CircleCI |
        Travis CI |
        Argo CD | argocd
        Prometheus | | case
        Datadog |
        Splunk |
        New Relic |
        OpenTelemetry |
        nginx |
        Apache HTTP Server | apache httpd
        HAProxy |
        Istio |
        Cisco | cisco ios | case
        TCP/IP |
        DNS | | case
        VPN | | case
        Active Directory |
        LDAP |
        Networking | netzwerktechnik, computer networks | case list
        Network Security | netzwerksicherheit
        Information Security | it security, it sicherheit, cybersecurity, cyber security, seguridad informática
        Penetration Testing | pentesting, penetration tests
        ISO 27001 |
        SIEM |
        Cryptography | kryptographie
        DevOps | dev ops
        Site Reliability Engineering | sre
        IT Support | helpdesk, help desk, service desk
        ITIL |
        System Administration | systemadministration, sysadmin, systems administration
        """

    static let tools = """
        Git |
        GitHub |
        GitLab |
        Bitbucket |
        Subversion | svn
        Mercurial | | case list
        Jira |
        Confluence | | case
        Trello |
        Asana |
        Notion | | case list
        Slack | | case list
        Agile | agile methodologies, agile development, agil, agile methoden
        Scrum |
        Kanban |
        SAFe | | case
        Waterfall | | case list
        Test-Driven Development | tdd
        BDD | behavior driven development, behaviour driven development
        Domain-Driven Design | ddd
        Design Patterns | entwurfsmuster
        Object-Oriented Programming | oop, objektorientierte programmierung
        Functional Programming |
        Software Architecture | softwarearchitektur
        Embedded Systems | embedded software, embedded linux
        RTOS | freertos
        FPGA |
        PLC | sps, siemens s7, plc programming | case
        Arduino |
        Raspberry Pi |
        Robotics | robotik
        ROS | robot operating system | case
        IoT | internet of things | case
        Blockchain |
        Unit Testing | unit tests
        JUnit |
        pytest |
        Jest | | case list
        Mocha | | case list
        Cypress | | case list
        Playwright | | case list
        Selenium |
        Cucumber | | case list
        Postman | | case
        SonarQube |
        Test Automation | testautomatisierung, automated testing
        UML |
        BPMN |
        LaTeX | | case
        Figma |
        Sketch | | case list
        Adobe XD |
        Photoshop | adobe photoshop
        Illustrator | adobe illustrator | case list
        InDesign | adobe indesign
        Premiere Pro | adobe premiere
        After Effects |
        Adobe Creative Suite | adobe creative cloud, creative suite
        Blender | | case
        3ds Max |
        Maya | autodesk maya | case list
        AutoCAD | auto cad
        Revit |
        SolidWorks | solid works
        CATIA |
        Inventor | autodesk inventor | case list
        ANSYS |
        CAD | | case
        BIM | building information modeling | case
        GIS | arcgis, qgis | case
        UX Design | user experience, ux, ux ui, ui ux
        UI Design | user interface design
        User Research |
        Wireframing | wireframes
        Prototyping | prototypes
        Typography |
        Photography | photographie, fotografie, fotografía
        Video Editing | videoschnitt, montage vidéo
        """
}

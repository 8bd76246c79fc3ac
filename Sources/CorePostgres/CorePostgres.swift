// CorePostgres

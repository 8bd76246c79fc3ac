// ChatApp

// WorkerApp

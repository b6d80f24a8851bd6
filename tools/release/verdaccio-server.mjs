// Runs in the folder that verdaccio was installed in (see local-registry.ts), and prints the port that it listens on.
import { join } from 'node:path'

import { runServer } from 'verdaccio'

const server = await runServer(join(import.meta.dirname, 'config.yaml'))
server.listen(0, '127.0.0.1', () => console.log(`port ${server.address().port}`))

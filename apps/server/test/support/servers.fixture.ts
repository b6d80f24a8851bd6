// Starts and stops servers in this process for the tests of another package, which ask by messages. The modules of a server are
// loaded once, which costs more than a second of CPU time.
import process from 'node:process'

import { fromFlags } from '../../src/config/flags.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { RunningServer } from '../../src/server.ts'
import { startServer } from '../../src/server.ts'

interface Request {
  readonly number: number
  /** Settings of a server to start, as a process gets them. */
  readonly env?: Readonly<Record<string, string>>
  /** The number of the request that started the server to stop. */
  readonly stop?: number
}

const running = new Map<number, RunningServer>()

/** The URLs of a server. */
interface Started {
  readonly http: string
  readonly api: string
}

async function run({ number, env, stop }: Request): Promise<Started | undefined> {
  if (env !== undefined) {
    const { config, origins } = await loadConfig({ flags: fromFlags([]), env })
    const server = await startServer(config, { origins })
    running.set(number, server)
    return { http: server.http.url, api: server.api.url }
  }
  if (stop !== undefined) {
    await running.get(stop)?.close()
    running.delete(stop)
  }
  return undefined
}

process.on('message', (request: Request) => {
  run(request).then(
    (started) => process.send?.({ number: request.number, started }),
    (error: unknown) => process.send?.({ number: request.number, problem: String(error) }),
  )
})
process.on('disconnect', () => process.exit())

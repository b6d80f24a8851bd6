import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import { addAgent03 } from './agent-0.3.ts'
import { addAgent10 } from './agent-1.0.ts'
import type { Handler } from './express.ts'
import { loadExpress } from './express.ts'
import type { SeenRequest } from './process.ts'

// Agents made with the official SDKs, as their READMEs have it, as a process of their own: the Express beneath them does not
// run under the test runner's resolution. The process tells its parent its origin, and ends with it.

const express = await loadExpress()
const app = express()
const server = createServer(app as unknown as RequestListener)
await once(server.listen(0, '127.0.0.1'), 'listening')
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

let seen: SeenRequest[] = []

/** Notes every call before the SDK sees it. */
function noting(agent: string): Handler {
  return ({ headers, method, body }, _response, next) => {
    if (method === 'POST') {
      const { method: name = '' } = (body ?? {}) as { method?: string }
      const version = headers['a2a-version'] ?? null
      seen.push({ agent, method: name, version, throughGateway: headers['x-broker-caller-id'] !== undefined })
    }
    next()
  }
}

for (const agent of ['v10', 'v03', 'both', 'plain', 'plain-both']) app.use(`/${agent}`, express.json(), noting(agent))

const holds = [
  addAgent10(app, origin, '/v10'),
  addAgent10(app, origin, '/both', { speaks03: true }),
  addAgent10(app, origin, '/plain', { capable: false }),
  addAgent10(app, origin, '/plain-both', { capable: false, speaks03: true }),
  addAgent03(app, origin, '/v03'),
]

const release: Handler = ({ body }, response) => {
  const { taskId } = body as { taskId: string }
  response.json(holds.some((each) => each.release(taskId)))
}
app.use('/control/release', express.json(), release)

const take: Handler = (_request, response) => {
  response.json(seen)
  seen = []
}
app.use('/control/seen', take)

process.send?.(origin)
process.once('disconnect', () => process.exit())

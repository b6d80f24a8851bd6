import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'

import { SignJWT } from 'jose'

import type { CommandCall, RunningServer } from '../command.ts'
import type { CommandIo } from '../terminal.ts'
import { warn } from '../terminal.ts'
import { commandInUse } from '../token.ts'
import { Office } from './office.ts'

const POLICY = `rules:
  - { clients: 'customer-*', actions: send, patterns: queues, channels: prints, effect: deny }
  - { clients: '*', actions: '*', patterns: '*', channels: '*', effect: allow }`

/** `signalbox demo`: starts a server in a temporary folder, and clients of it, until Ctrl-C. @throws CommandError START_FAILED */
export async function demoCommand({ line, io, host }: CommandCall): Promise<void> {
  const { signal } = io
  const port = line.whole('port', 0, 65_535) ?? (await usualPort(9090, io))
  const consolePort = line.whole('console-port', 0, 65_535) ?? (await usualPort(8080, io))
  const folder = await mkdtemp(join(tmpdir(), 'signalbox-demo-'))
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  // Also when a second Ctrl-C, which npx sends, or a closed terminal ends the process.
  process.once('exit', remove).once('SIGHUP', () => process.exit(129))
  try {
    const secret = randomBytes(32).toString('hex')
    await writeFile(join(folder, 'policy.yaml'), POLICY)
    await writeFile(join(folder, 'routes.json'), '[{ "key": "prints", "routes": "events_store:archive" }]')
    const settings = {
      HTTP_PORT: String(port),
      API_PORT: String(consolePort),
      STORE_PATH: join(folder, 'store'),
      LOG_LEVEL: 'error',
      SHUTDOWN_SECONDS: '0',
      // Clients have names by their tokens; the console needs none.
      AUTHENTICATION_ENABLE: 'true',
      AUTHENTICATION_SECRET: secret,
      AUTHORIZATION_ENABLE: 'true',
      AUTHORIZATION_POLICY_FILE: join(folder, 'policy.yaml'),
      ROUTING_FILE: join(folder, 'routes.json'),
      WEBHOOKS_ENABLE: 'true',
      WEBHOOKS_KEY_FILE: join(folder, 'webhooks.key'),
      WEBHOOKS_ALLOW: '127.0.0.1',
    }
    await using server = await host.startServer(settings, signal)
    const tokenOf = (client: string): Promise<string> => {
      const token = new SignJWT({ ClientID: client, roles: ['Admin'] }).setProtectedHeader({ alg: 'HS256' })
      return token.setIssuedAt().setExpirationTime('90d').sign(Buffer.from(secret))
    }
    await using office = new Office(server.http.url, tokenOf)
    await office.open()
    await io.stdout.write(guide(server, await tokenOf('you'), commandInUse(io.env)))
    if (!signal.aborted) await once(signal, 'abort')
  } finally {
    remove()
  }
}

/** Returns the port, or 0 for a free one if it is in use. */
async function usualPort(port: number, io: CommandIo): Promise<number> {
  const probe = createServer().listen(port, '127.0.0.1')
  try {
    await once(probe, 'listening')
    await once(probe.close(), 'close')
    return port
  } catch {
    await warn(io, `Port ${port} is in use; the demo uses another one.`)
    return 0
  }
}

function guide({ http, api }: RunningServer, token: string, started: string): string {
  const signalbox = started === 'npm start' ? 'npm -s start --' : started
  const screen = `${api.url}/console/#`
  const call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agent_list","arguments":{}}}'
  return `
Signalbox demo: a translation office at work, in an empty store. Console: ${api.url}/console/

Customers order from the planner, an agent. It calls the translator, an agent with two servers, and sends jobs
to the printer, whose press often fails. Billing gets a webhook for each order. The proofreader, an agent, is
often away for a minute.

Six things to try. Paste this into another terminal first:
  export SIGNALBOX_URL=${http.url} SIGNALBOX_API_URL=${api.url} SIGNALBOX_TOKEN=${token}

1. Watch messages pass: ${screen}/live
2. Order a translation, and follow its steps:
   ${signalbox} agents call planner 'Manual 7 in Danish' --stream
3. Ask the proofreader. While it is away, the call waits in its inbox: ${screen}/agents/proofreader
   ${signalbox} agents call proofreader 'Their is a mistake'
4. Pause the printer, and see its queue grow: ${screen}/channels/queues/prints
   ${signalbox} pause prints --for 60s
5. Send back the jobs that the printer refused: ${screen}/dead-letters
   ${signalbox} redrive prints.dead
6. List the agents with MCP, as a model does:
   curl -s $SIGNALBOX_URL/mcp -H "authorization: Bearer $SIGNALBOX_TOKEN" -H 'content-type: application/json' -d '${call}'

Ctrl-C ends everything and removes the store.
`
}

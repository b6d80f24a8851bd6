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
import { commandInUse } from '../token.ts'
import { Office } from './office.ts'

const POLICY = {
  rules: [
    { clients: 'customer-*', actions: 'send', patterns: 'queues', channels: 'prints*', effect: 'deny' },
    { clients: '*', actions: '*', patterns: '*', channels: '*', effect: 'allow' },
  ],
}

const ROUTES = [{ key: 'prints', routes: 'events_store:archive' }]

/**
 * `signalbox demo`: starts a server with an empty store, and agents and clients that use it until Ctrl-C. Leaves nothing
 * behind. @throws CommandError CONFIG_INVALID; START_FAILED, such as for a port in use
 */
export async function demoCommand({ line, io, host }: CommandCall): Promise<void> {
  const { signal } = io
  const given = [line.whole('port', 0, 65_535), line.whole('console-port', 0, 65_535)] as const
  const ports = { HTTP_PORT: given[0] ?? (await freePort(9090)), API_PORT: given[1] ?? (await freePort(8080)) }
  const folder = await mkdtemp(join(tmpdir(), 'signalbox-demo-'))
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  // A second Ctrl-C ends the process at once; `npx` passes on the first one a second time.
  process.once('exit', remove)
  try {
    const secret = randomBytes(32).toString('hex')
    await writeFile(join(folder, 'policy.yaml'), JSON.stringify(POLICY))
    await writeFile(join(folder, 'routes.json'), JSON.stringify(ROUTES))
    await using server = await host.startServer(
      {
        HTTP_PORT: String(ports.HTTP_PORT),
        API_PORT: String(ports.API_PORT),
        STORE_PATH: join(folder, 'store'),
        LOG_LEVEL: 'error',
        SHUTDOWN_SECONDS: '0',
        // So that the clients have names. The management listener needs no token.
        AUTHENTICATION_ENABLE: 'true',
        AUTHENTICATION_SECRET: secret,
        AUTHORIZATION_ENABLE: 'true',
        AUTHORIZATION_POLICY_FILE: join(folder, 'policy.yaml'),
        ROUTING_FILE: join(folder, 'routes.json'),
        WEBHOOKS_ENABLE: 'true',
        WEBHOOKS_KEY_FILE: join(folder, 'webhooks.key'),
        WEBHOOKS_ALLOW: '127.0.0.1',
      },
      signal,
    )
    const tokenOf = (client: string): Promise<string> =>
      new SignJWT({ ClientID: client, roles: ['Admin'] })
        .setProtectedHeader({ alg: 'HS256' })
        .setIssuedAt()
        .setExpirationTime('90d')
        .sign(Buffer.from(secret))
    await using office = new Office(server.http.url, tokenOf)
    await office.open()
    await io.stdout.write(guide(server, await tokenOf('you'), commandInUse(io.env)))
    if (!signal.aborted) await once(signal, 'abort')
  } finally {
    remove()
    process.off('exit', remove)
  }
}

/** Returns the port, or 0 if another program uses it. */
function freePort(port: number): Promise<number> {
  const probe = createServer()
  return new Promise((resolve) => {
    probe.once('error', () => resolve(0))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(port)))
  })
}

function guide({ http, api }: RunningServer, token: string, started: string): string {
  const signalbox = started === 'npm start' ? 'npm -s start --' : started
  const console = `${api.url}/console/`
  const call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agent_list","arguments":{}}}'
  return `
Signalbox demo: a translation office with agents, on an empty store

  console   ${console}
  messages  ${http.url}
${[http.port === 9090 ? '' : 'messages 9090', api.port === 8080 ? '' : 'console 8080'].join()}
Customers order translations from the planner, an agent. It calls the translator, an agent with two
servers, and sends jobs to the printer, whose press often fails. Billing gets a webhook for each order.
The proofreader is away most of the time: requests wait in its inbox.

Six things to try. For the commands, paste this into another terminal first:

  export SIGNALBOX_URL=${http.url} SIGNALBOX_API_URL=${api.url}
  export SIGNALBOX_TOKEN=${token}

1. Watch messages pass.
     ${console}#/live
2. Order a translation, and follow its steps.
     ${signalbox} agents call planner 'Manual 7 in Danish' --stream
3. Give the proofreader a text, and find it in the inbox while he is away.
     ${signalbox} agents call proofreader 'Their is a mistake' &
     ${console}#/agents/proofreader
4. Pause the printer for a minute, and watch the queue grow.
     ${signalbox} pause prints --for 60s
     ${console}#/channels/queues/prints
5. Send back the jobs that the printer refused. It has paper now.
     ${signalbox} redrive prints.dead
6. List the agents with MCP, as a model does.
     curl -s $SIGNALBOX_URL/mcp -H "authorization: Bearer $SIGNALBOX_TOKEN" \\
       -H 'content-type: application/json' -d '${call}'

Ctrl-C ends everything, and removes the store.
`
}

import { EchoAgent } from './agents.ts'
import { openEndpoint, subscribeWebhook } from './estate.ts'
import { Server } from './server.ts'
import { SECRET } from './tokens.ts'

/** Starts a server that knows its clients by their names. */
export async function startMapped(keyFile: string): Promise<Server> {
  return Server.start({
    AUTHENTICATION_ENABLE: 'true',
    AUTHENTICATION_SECRET: SECRET,
    WEBHOOKS_ENABLE: 'true',
    WEBHOOKS_KEY_FILE: keyFile,
    WEBHOOKS_ALLOW: '127.0.0.1',
  })
}

/** Opens an agent and a webhook, and sends messages between ten nodes; one call of the agent fails. */
export async function talk(server: Server, held: AsyncDisposableStack): Promise<void> {
  const agent = held.use(await EchoAgent.start())
  await agent.register(server, { agent_id: 'translator', name: 'Translator' })
  await subscribeWebhook(server, 'ledger', await openEndpoint(held))
  await repeat(server)
  for (const message of ['Translate this contract.', 'fail']) {
    await server.tool('agent_send', { agent_id: 'translator', message }, 'assistant')
  }
}

/** Sends messages between the nodes, except to the agent. */
export async function repeat(server: Server): Promise<void> {
  for (let number = 1; number <= 6; number++) {
    await server.tool('queue_send', { channel: 'orders', body: String(number) }, 'shop')
    await server.tool('queue_send', { channel: 'payments', body: String(number) }, 'shop')
    if (number <= 3) await server.tool('events_store_publish', { channel: 'ledger', body: String(number) }, 'billing')
  }
  const receive = { wait_timeout_seconds: 1, max_messages: 4 }
  await server.tool('queue_receive', { channel: 'orders', ...receive }, 'packing')
  await server.tool('queue_receive', { channel: 'payments', ...receive }, 'payment-worker')
}

/** The numbers of callers, channels and receivers of {@link crowd}. */
export const CROWD = { callers: 120, channels: 100, receivers: 80 } as const

function name(kind: string, number: number): string {
  return `${kind}-${String(number).padStart(3, '0')}`
}

/** Sends messages between 300 nodes: the first ones are the busiest. */
export async function crowd(server: Server): Promise<void> {
  for (let number = 0; number < CROWD.callers; number++) {
    const channels = [number % CROWD.channels, (number * 7) % 20, number % 5]
    await Promise.all(
      channels.flatMap((channel) =>
        Array.from({ length: number < 30 ? 3 : 1 }, () =>
          server.tool('queue_send', { channel: name('queue', channel), body: 'x' }, name('caller', number)),
        ),
      ),
    )
  }
  for (let number = 0; number < CROWD.receivers; number++) {
    const receive = { channel: name('queue', number), max_messages: 1, wait_timeout_seconds: 1 }
    await server.tool('queue_receive', receive, name('worker', number))
  }
}

import { setTimeout as pause } from 'node:timers/promises'

import type { Signalbox } from '@signalbox/client'
import { connect, Reject } from '@signalbox/client'
import type { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import { EchoAgent } from './agents.ts'
import { Estate, openEndpoint, openStream, startTask, subscribeWebhook } from './estate.ts'
import type { Server } from './server.ts'
import { SECRET } from './tokens.ts'

/** The time between two turns of the traffic, in ms. */
const TURN_MS = 150

const SHOPS = ['south', 'west', 'north'] as const

const WORK_SECONDS = 4

/** A shop with clients, agents and operators that have names, and that work until the shop is closed. */
export class Shop implements AsyncDisposable {
  readonly server: Server
  readonly #stack: AsyncDisposableStack

  private constructor(server: Server, stack: AsyncDisposableStack) {
    this.server = server
    this.#stack = stack
  }

  static async open(folder: TemporaryFolder): Promise<Shop> {
    await using stack = new AsyncDisposableStack()
    const { server } = stack.use(
      await Estate.start({
        folder,
        settings: {
          AUTHENTICATION_ENABLE: 'true',
          API_AUTHENTICATION_ENABLE: 'true',
          AUTHENTICATION_SECRET: SECRET,
          QUEUE_MAX_MESSAGES: '100000',
          STORE_MAX_AGE_SECONDS: '2592000',
        },
      }),
    )
    await openAgents(server, stack.use(await EchoAgent.start()))
    await subscribeWebhook(server, 'archive', await openEndpoint(stack, 503), 'warehouse')
    const closed = new AbortController()
    stack.defer(() => closed.abort())
    openWorkers(server, stack)
    for (const [text, client] of [
      ['report', 'back-office'],
      ['wait', 'support-desk'],
    ] as const) {
      void openStream(server, text, closed.signal, client)
    }
    void Promise.all([
      startTask(server, 'slow', 'back-office'),
      startTask(server, 'wait', 'support-desk'),
      startTask(server, 'slow', 'assistant'),
    ]).catch(() => {})
    await useConsole(server)
    const traffic = sell(server, closed.signal)
    stack.defer(() => traffic)
    // The last deferred is the first that runs.
    stack.defer(() => closed.abort())
    return new Shop(server, stack.move())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync()
  }
}

/** Returns a client with a name, which is closed with the stack. */
function clientOf(server: Server, name: string, stack: AsyncDisposableStack): Signalbox {
  const token = server.headersOf(name)['authorization']?.replace('Bearer ', '') ?? ''
  return stack.use(connect(server.http, { token, source: `/${name}`, onError: () => {} }))
}

async function openAgents(server: Server, agent: EchoAgent): Promise<void> {
  const owners = [
    ['invoice-reader', 'Invoice reader', 'Reads the amounts of scanned invoices.', '3.1.0', 'accounting'],
    ['forecast', 'Forecast', 'Estimates the demand of the next week, by shop.', '0.9.2', 'back-office'],
    ['support', 'Support', 'Answers questions about an order.', '5.0.1', 'support-desk'],
  ] as const
  for (const [id, name, description, version, owner] of owners) {
    const skills = [{ id: 'main', name, description, tags: ['shop'] }]
    await agent.register(server, { agent_id: id, name, description, version, skills }, owner)
  }
}

/** Starts workers, subscribers and responders. */
function openWorkers(server: Server, stack: AsyncDisposableStack): void {
  const packing = clientOf(server, 'packing', stack)
  for (const shop of ['north', 'west']) packing.queue(`orders.${shop}`).work({ concurrency: 3 }, () => pause(300))
  clientOf(server, 'dispatch', stack)
    .queue('work')
    .work({ concurrency: 8 }, () => pause(350))
  clientOf(server, 'price-screen', stack)
    .events('prices.*')
    .on(() => {})
  clientOf(server, 'accounting', stack)
    .store('ledger')
    .on(() => {})
  clientOf(server, 'warehouse', stack).answer('queries', 'stock.level', async () => {
    await pause(40)
    return { inStock: 12 }
  })
  clientOf(server, 'label-printer', stack).answer('commands', 'labels.print', async () => {
    await pause(120)
    if (Date.now() % 5 === 0) throw new Reject('the printer has no paper')
  })
  clientOf(server, 'reporting', stack).answer('queries', 'reports.monthly', async () => {
    await pause(WORK_SECONDS * 5_000)
    return {}
  })
}

/** Does what operators do, and what the server refuses. */
async function useConsole(server: Server): Promise<void> {
  await server.act('create_channel', { channel: 'returns', type: 'queues' }, 'anna')
  await server.act('send_queue_message', { channel: 'returns', body: '{"order":7012,"reason":"damaged"}' }, 'anna')
  await server.act('redrive_dead_letters', { channel: 'payments.dead', source: 'invoices', max_messages: 1 }, 'ben')
  await server.tool('queue_send', { channel: 'secret.plans', body: 'x' }, 'shop-north')
  await server.act('purge_queue', { channel: 'returns', dry_run: true }, 'ben')
  await server.act('purge_queue', { channel: 'returns' }, 'ben')
}

/** Lets a request fail: the page shows its error. */
function quietly(request: Promise<unknown>): void {
  request.catch(() => {})
}

/** Sends, publishes and asks at changing rates until the signal ends it. */
async function sell(server: Server, signal: AbortSignal): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const shops = SHOPS.map((shop) => clientOf(server, `shop-${shop}`, stack))
  const pricing = clientOf(server, 'pricing', stack)
  const checkout = clientOf(server, 'checkout', stack)
  const office = clientOf(server, 'back-office', stack)
  const packing = clientOf(server, 'packing', stack)
  let waiting = 0
  for (let turn = 0; !signal.aborted; turn++) {
    const wave = 2 + Math.round(1.6 * Math.sin(turn / 60) + 0.8 * Math.sin(turn / 11))
    for (let number = 0; number < wave; number++) {
      const index = number === 0 ? turn % SHOPS.length : 0
      const [sender, shop] = [shops[index], SHOPS[index]]
      const order = 9_000 + turn * 10 + number
      if (shop === 'south') waiting++
      await sender?.queue(`orders.${shop}`).send({
        order,
        customer: `C-${4_000 + ((order * 7) % 900)}`,
        items: [{ sku: `T-${100 + (order % 40)}`, count: 1 + (order % 3) }],
        total: 12.5 + (order % 17) * 3.5,
        currency: 'EUR',
      })
      const price = Math.round(10_000 + 800 * Math.sin((turn + number) / 25)) / 100
      await pricing.events(`prices.${SHOPS[turn % SHOPS.length]}`).publish({ sku: `T-${100 + (turn % 40)}`, price })
    }
    // A backlog that rises and falls, however quick the machine is.
    const surplus = waiting - Math.round(30 + 25 * Math.sin(turn / 50))
    if (surplus > 0) waiting -= await pack(packing, Math.min(surplus, MOST_PACKED))
    if (turn % 100 === 0) for (const agent of REGISTERED) await sendHeartbeat(server, agent)
    if (turn % 9 === 0) quietly(checkout.query('stock.level', { sku: `T-${100 + (turn % 40)}` }, { timeout: '5s' }))
    if (turn % 14 === 0) quietly(office.command('labels.print', { order: 9_000 + turn * 10 }, { timeout: '5s' }))
    if (turn % 130 === 0) quietly(office.query('reports.monthly', { month: '2026-10' }, { timeout: '60s' }))
    if (turn % 110 === 0) quietly(checkout.query('shipping.quote', { country: 'PT' }, { timeout: '2s' }))
    if (turn % 20 === 0) quietly(pricing.store('ledger').append({ entry: turn, amount: 12.4, currency: 'EUR' }))
    if (turn % 6 === 0) {
      const agent = AGENTS[(turn / 6) % AGENTS.length] ?? 'translator'
      await callAgent(server, agent, turn % 90 === 0 ? 'fail' : 'Translate this contract.')
    }
    await pause(TURN_MS)
  }
}

/** The most messages that are packed in one turn. */
const MOST_PACKED = 10

/** Receives and acknowledges orders of a shop; returns their number. */
async function pack(client: Signalbox, max: number): Promise<number> {
  let packed = 0
  for await (const order of client.queue('orders.south').receive({ max, wait: '1s' })) {
    await order.ack()
    packed++
  }
  return packed
}

const AGENTS = ['translator', 'support', 'translator', 'invoice-reader', 'planner'] as const

const REGISTERED = ['translator', 'planner', 'invoice-reader', 'forecast', 'support'] as const

/** The server removes an agent without heartbeats after five minutes. */
async function sendHeartbeat(server: Server, agent: string): Promise<void> {
  const response = await fetch(`${server.http}/agents/heartbeat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...server.headersOf('agents') },
    body: JSON.stringify({ agent_id: agent }),
  })
  await response.arrayBuffer()
}

async function callAgent(server: Server, agent: string, text: string): Promise<void> {
  const message = { kind: 'message', role: 'user', messageId: '1', parts: [{ kind: 'text', text }] }
  const response = await fetch(`${server.http}/a2a/${agent}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...server.headersOf('support-desk') },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params: { message } }),
  })
  await response.arrayBuffer()
}

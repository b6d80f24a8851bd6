import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'

import type { Signalbox } from '@signalbox/client'
import { connect, retryAfter } from '@signalbox/client'

/** The times for which the proofreader works, and then is away, in ms. After a minute away the server stops waiting for it. */
const AT_WORK_MS = 20_000
const AWAY_MS = 70_000

const LANGUAGES = ['French', 'German', 'Polish', 'Portuguese'] as const

/** Answers a text with parts of text. */
type Answer = (text: string, signal: AbortSignal) => AsyncGenerator<string>

/** The cast of the demo: a translation office with agents, a printer and customers, who work until it closes. */
export class Office implements AsyncDisposable {
  readonly #url: string
  readonly #tokenOf: (client: string) => Promise<string>
  readonly #stop = new AbortController()
  readonly #signal = this.#stop.signal
  readonly #clients: Signalbox[] = []
  readonly #servers: Server[] = []
  readonly #working: Promise<void>[] = []

  /** @param url The shared listener */
  constructor(url: string, tokenOf: (client: string) => Promise<string>) {
    this.#url = url
    this.#tokenOf = tokenOf
  }

  /** Resolves when the agents are registered and the work has begun. */
  async open(): Promise<void> {
    await this.#openTranslators()
    await this.#openPlanner()
    await this.#openPrinter()
    await this.#openBilling()
    await this.#openProofreader()
    await this.#openCustomers()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await Promise.all([...this.#clients.map((client) => client.close()), ...this.#working])
    for (const server of this.#servers) {
      server.close()
      server.closeAllConnections()
    }
  }

  async #client(name: string): Promise<Signalbox> {
    // Some failures are part of the demo: the console shows them.
    const client = connect(this.#url, { token: await this.#tokenOf(name), source: `/${name}`, onError: () => {} })
    this.#clients.push(client)
    return client
  }

  /** Serves HTTP on a free port of this machine. Returns the URL. */
  async #serve(listener: RequestListener): Promise<string> {
    const server = createServer(listener)
    this.#servers.push(server)
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const address = server.address()
    return `http://127.0.0.1:${typeof address === 'object' ? address?.port : address}/`
  }

  /** Repeats work, which may fail, until the office closes. */
  #repeat(pauseMs: number, work: (round: number) => Promise<unknown>): void {
    const run = async (): Promise<void> => {
      for (let round = 1; !this.#signal.aborted; round++) {
        await work(round).catch(() => {})
        await this.#pause(pauseMs).catch(() => {})
      }
    }
    this.#working.push(run())
  }

  #pause(ms: number): Promise<void> {
    return pause(ms, undefined, { signal: this.#signal })
  }

  async #openAgent(client: Signalbox, card: { id: string; instance?: string }, answer: Answer): Promise<void> {
    const url = await this.#serve((request, response) => {
      answerCall(request, response, (text, gone) => answer(text, AbortSignal.any([gone, this.#signal]))).catch(() =>
        response.destroy(),
      )
    })
    const { id, instance, ...more } = card
    await client.agents.serve({ id, instance, url, card: { ...more, a2a: { wire: '0.3' } } })
  }

  /** An agent with two servers, which the gateway calls in turn. */
  async #openTranslators(): Promise<void> {
    const client = await this.#client('translator')
    let calls = 0
    for (const instance of ['translator-1', 'translator-2']) {
      const description = 'Translates manuals, one chapter at a time.'
      const card = {
        id: 'translator',
        instance,
        name: 'Translator',
        description,
        skills: skill('Translate', 'language'),
      }
      await this.#openAgent(client, card, async function* (text, signal) {
        await pause(300 + 90 * (++calls % 9), undefined, { signal })
        if (calls % 23 === 0) throw new Error('the dictionary has no such word')
        yield `${text}: translated by ${instance}`
      })
    }
  }

  /** An agent that has the chapters of an order translated, and sends the result to the printer. */
  async #openPlanner(): Promise<void> {
    const planner = await this.#client('planner')
    const orders = planner.store('orders')
    let order = 4_000
    const description = 'Plans the order of a customer, and calls the translator.'
    const card = { id: 'planner', name: 'Planner', description, skills: skill('Plan an order', 'orders') }
    await this.#openAgent(planner, card, async function* (text, signal) {
      const number = ++order
      await orders.append({ order: number, text, state: 'accepted' })
      yield `Order ${number} has two chapters`
      for (const chapter of [1, 2]) {
        const reply = await planner.agents('translator').send(`${text}, chapter ${chapter}`, { signal, timeout: '20s' })
        await planner.events('progress.chapters').publish({ order: number, chapter, of: 2 })
        yield reply.text
      }
      const job = { order: number, paper: number % 12 === 2 ? 'A3' : 'A4' }
      await planner.queue('prints').send(job, { maxReceives: 5, deadLetter: 'prints.dead' })
      await orders.append({ order: number, state: 'translated' })
      yield `Order ${number} is at the printer`
    })
  }

  /** A worker with an unreliable press: jobs that fail are tried again, and the queue pauses while the press is busy. */
  async #openPrinter(): Promise<void> {
    const refused = new Set<string>()
    let calls = 0
    const press = await this.#serve(({ url = '' }, response) => {
      // It has no A3 paper for a new job, but for one that an operator sends back.
      const hasPaper = url.endsWith('A4') || refused.has(url) || !refused.add(url)
      const status = ++calls % 17 === 0 ? 503 : calls % 5 === 0 ? 500 : hasPaper ? 200 : 422
      response.writeHead(status, { 'retry-after': '6' }).end()
    })
    const prints = (await this.#client('printer')).queue<{ order: number; paper: string }>('prints')
    prints.work({ concurrency: 2, backoff: () => '2s' }, async ({ order, paper }, work) => {
      await this.#pause(400)
      const answer = await fetch(`${press}${order}/${paper}`, { method: 'POST', signal: this.#signal })
      if (answer.status === 503) return work.pause(retryAfter(answer) ?? '5s')
      if (answer.status === 422) return await work.reject()
      if (!answer.ok) throw new Error(`the press answered ${answer.status}`)
    })
  }

  /** A receiver of webhooks that is sometimes out of service. */
  async #openBilling(): Promise<void> {
    let calls = 0
    const sink = await this.#serve(({ method }, response) => {
      const status = method === 'OPTIONS' ? 200 : ++calls % 11 === 0 ? 503 : 204
      response.writeHead(status, { 'WebHook-Allowed-Origin': '*' }).end()
    })
    const secret = `whsec_${randomBytes(32).toString('base64')}`
    const response = await fetch(`${this.#url}/ce/subscriptions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${await this.#tokenOf('billing')}` },
      body: JSON.stringify({ sink, config: { channel: 'orders', secret } }),
    })
    if (!response.ok) throw new Error(`the webhook was refused with ${response.status}: ${await response.text()}`)
  }

  /** A pull agent that is away most of the time: its requests wait. */
  async #openProofreader(): Promise<void> {
    const { agents } = await this.#client('proofreader')
    const card = { name: 'Proofreader', description: 'Corrects texts, and is often away.', skills: skill('Proofread') }
    this.#repeat(AWAY_MS, async () => {
      const pool = agents.work('proofreader', async ({ text }) => this.#pause(500).then(() => `${text} ✓`), { card })
      await this.#pause(AT_WORK_MS)
      await pool.drain('2s')
    })
  }

  async #openCustomers(): Promise<void> {
    for (const [index, name] of ['customer-press', 'customer-museum', 'customer-airline'].entries()) {
      const customer = await this.#client(name)
      this.#repeat(1_500 + 700 * index, async (round) => {
        const text = `Manual ${100 * index + round} in ${LANGUAGES[(round + index) % LANGUAGES.length]}`
        for await (const step of customer.agents('planner').stream(text, { signal: this.#signal })) void step
      })
    }
    const editor = await this.#client('editor')
    editor.events('progress.*').on(() => {})
    editor.answer('queries', 'prices', async () => this.#pause(60).then(() => ({ page: 12, currency: 'EUR' })))
    this.#repeat(2_000, async (round) => editor.query('prices', { pages: 8 + (round % 30) }))
    this.#repeat(6_000, async (round) => {
      const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: `Page ${round} of the catalog` }] }
      const configuration = { returnImmediately: true }
      await editor.agents('proofreader').call('SendMessage', { message, configuration })
    })
  }
}

function skill(name: string, tag = 'text'): object[] {
  return [{ id: 'main', name, tags: [tag] }]
}

/** The members of a request of A2A 0.3 that agents read. */
interface AgentRequest {
  readonly id: unknown
  readonly method: string
  readonly params?: { readonly message?: { readonly parts?: readonly { readonly text?: string }[] } }
}

/** Answers a call of an agent: with one message, or with a stream of its parts. */
async function answerCall(request: IncomingMessage, response: ServerResponse, answer: Answer): Promise<void> {
  const { id, method, params } = (await json(request)) as AgentRequest
  const rpc = (outcome: object): string => JSON.stringify({ jsonrpc: '2.0', id, ...outcome })
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const parts = answer(params?.message?.parts?.map((part) => part.text ?? '').join(' ') ?? '', gone.signal)
  const isStream = method === 'message/stream'
  const task = { taskId: randomUUID(), contextId: randomUUID() }
  const send = (event: object): unknown => response.write(`data: ${rpc({ result: { ...event, ...task } })}\n\n`)
  const status = (state: string, final: boolean): object => ({ kind: 'status-update', status: { state }, final })
  response.setHeader('content-type', isStream ? 'text/event-stream' : 'application/json')
  if (isStream) send(status('working', false))
  let said = ''
  try {
    if (!isStream && method !== 'message/send') throw new Error(`no such method: ${method}`)
    for await (const text of parts) {
      said += text
      if (isStream)
        send({ kind: 'artifact-update', artifact: { artifactId: randomUUID(), parts: [{ kind: 'text', text }] } })
    }
    const result = { kind: 'message', role: 'agent', messageId: randomUUID(), parts: [{ kind: 'text', text: said }] }
    if (isStream) send(status('completed', true))
    response.end(isStream ? undefined : rpc({ result }))
  } catch (error) {
    if (isStream) send(status('failed', true))
    response.end(isStream ? undefined : rpc({ error: { code: -32_000, message: String(error) } }))
  }
}

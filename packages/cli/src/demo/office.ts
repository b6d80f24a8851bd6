import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import { text as textOf } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'

import type { ServeAgentOptions, Signalbox } from '@signalbox/client'
import { connect, retryAfter } from '@signalbox/client'

const SKILLS = [{ id: 'manuals', name: 'Work on a manual', tags: ['language'] }]
type Answer = (text: string, signal: AbortSignal) => AsyncGenerator<string>

/** The cast of the demo: a translation office with agents, a printer and customers, who work until it closes. */
export class Office implements AsyncDisposable {
  readonly #url: string
  readonly #tokenOf: (client: string) => Promise<string>
  readonly #stop = new AbortController()
  readonly #stoppable = { signal: this.#stop.signal }
  readonly #endings: (() => unknown)[] = []

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
    await Promise.all(this.#endings.map((end) => end()))
  }

  async #client(name: string): Promise<Signalbox> {
    // Some failures are part of the demo: the console shows them.
    const client = connect(this.#url, { token: await this.#tokenOf(name), source: `/${name}`, onError: () => {} })
    this.#endings.push(() => client.close())
    return client
  }

  async #serve(listener: RequestListener): Promise<string> {
    const server = createServer(listener)
    this.#endings.push(() => server.close().closeAllConnections())
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const address = server.address()
    return `http://127.0.0.1:${typeof address === 'object' ? address?.port : address}/`
  }

  async #serveAgent(client: Signalbox, agent: Omit<ServeAgentOptions, 'url'>, answer: Answer): Promise<void> {
    const url = await this.#serve((...call) => void answerCall(...call, answer).catch(() => call[1].destroy()))
    await client.agents.serve({ ...agent, url, card: { ...agent.card, skills: SKILLS, a2a: { wire: '0.3' } } })
  }

  /** Repeats work, which may fail, until the office closes. */
  #repeat(pauseMs: number, work: (round: number) => Promise<unknown>): void {
    const run = async (): Promise<void> => {
      for (let round = 1; !this.#stop.signal.aborted; round++) {
        await work(round).catch(() => {})
        await pause(pauseMs, undefined, this.#stoppable).catch(() => {})
      }
    }
    const done = run()
    this.#endings.push(() => done)
  }

  /** An agent with two servers, which the gateway calls in turn. */
  async #openTranslators(): Promise<void> {
    const client = await this.#client('translator')
    const card = { name: 'Translator', description: 'Translates manuals, one chapter at a time.' }
    let calls = 0
    for (const instance of ['translator-1', 'translator-2']) {
      await this.#serveAgent(client, { id: 'translator', instance, card }, async function* (text, signal) {
        await pause(300 + 90 * (++calls % 9), undefined, { signal })
        if (calls % 23 === 0) throw new Error('the dictionary has no such word')
        yield `${text}: translated by ${instance}`
      })
    }
  }

  /** An agent that has the chapters of an order translated, and sends the result to the printer. */
  async #openPlanner(): Promise<void> {
    const planner = await this.#client('planner')
    let last = 4_000
    const card = { name: 'Planner', description: 'Plans the order of a customer, and calls the translator.' }
    await this.#serveAgent(planner, { id: 'planner', card }, async function* (text, signal) {
      const order = ++last
      await planner.store('orders').append({ order, text, state: 'accepted' })
      yield `Order ${order} has two chapters`
      for (const chapter of [1, 2]) {
        const translate = () => planner.agents('translator').send(`${text}, chapter ${chapter}`, { signal })
        yield (await translate().catch(translate)).text
        await planner.events('progress.chapters').publish({ order, chapter, of: 2 })
      }
      const job = { order, paper: order % 12 === 5 ? 'A3' : 'A4' }
      await planner.queue('prints').send(job, { maxReceives: 5, deadLetter: 'prints.dead' })
      await planner.store('orders').append({ order, state: 'translated' })
      yield `Order ${order} is at the printer`
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
      await pause(400, undefined, this.#stoppable)
      const answer = await fetch(`${press}${order}/${paper}`, { method: 'POST', ...this.#stoppable })
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

  /** A pull agent that works for 30 s, and then is away for 75 s: its requests wait. */
  async #openProofreader(): Promise<void> {
    const { agents } = await this.#client('proofreader')
    const card = { name: 'Proofreader', description: 'Corrects texts, and is often away.', skills: SKILLS }
    this.#repeat(75_000, async () => {
      const pool = agents.work('proofreader', ({ text }) => `${text} ✓`, { card })
      await pause(30_000, undefined, this.#stoppable)
      await pool.drain('2s')
    })
  }

  async #openCustomers(): Promise<void> {
    const editor = await this.#client('editor')
    editor.events('progress.*').on(() => {})
    await editor.answer('queries', 'prices', () => ({ page: 12, currency: 'EUR' })).ready
    await editor.answer('commands', 'labels', () => pause(900, undefined, this.#stoppable)).ready
    this.#repeat(6_000, (round) => editor.agents('proofreader').send(`Page ${round} of the catalog`))
    for (const [index, language] of ['French', 'Polish', 'German'].entries()) {
      const customer = await this.#client(`customer-${index + 1}`)
      this.#repeat(1_500 + 700 * index, async (round) => {
        await customer.query('prices', { language, pages: 8 + (round % 30) })
        for await (const step of customer.agents('planner').stream(`Manual ${round} in ${language}`)) void step
        await customer.command('labels', { customer: index + 1, manual: round })
      })
    }
  }
}

type Call = Record<'id' | 'method', unknown> & { params: { message: { parts: { text?: string }[] } } }

/** Answers a call of an agent with one message, or with a stream of its parts. */
async function answerCall(request: IncomingMessage, response: ServerResponse, answer: Answer): Promise<void> {
  const { id, method, params }: Call = JSON.parse(await textOf(request))
  const isStream = method === 'message/stream'
  if (!isStream && method !== 'message/send') throw new Error('no such method')
  response.setHeader('content-type', isStream ? 'text/event-stream' : 'application/json')
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const rpc = (result: object): string => JSON.stringify({ jsonrpc: '2.0', id, result })
  const task = { taskId: randomUUID(), contextId: randomUUID() }
  const send = (event: object): unknown => isStream && response.write(`data: ${rpc({ ...event, ...task })}\n\n`)
  send({ kind: 'status-update', status: { state: 'working' }, final: false })
  const parts: object[] = []
  for await (const text of answer(params.message.parts[0]?.text ?? '', gone.signal)) {
    parts.push({ kind: 'text', text })
    send({ kind: 'artifact-update', artifact: { artifactId: randomUUID(), parts: parts.slice(-1) } })
  }
  send({ kind: 'status-update', status: { state: 'completed' }, final: true })
  response.end(isStream ? '' : rpc({ kind: 'message', role: 'agent', messageId: randomUUID(), parts }))
}

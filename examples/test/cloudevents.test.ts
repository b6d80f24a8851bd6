import type { ChildProcess } from 'node:child_process'
import { execFile, spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const FOLDER = fileURLToPath(new URL('../cloudevents', import.meta.url))
const children: ChildProcess[] = []
let store: string
let base: string

/** A program that runs until the end of the tests, and what it has printed so far. */
class Program {
  readonly child: ChildProcess
  output = ''
  #exit: number | null | undefined

  constructor(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    this.child = spawn(command, args, { cwd: ROOT, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
    children.push(this.child)
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding('utf8').on('data', (chunk: string) => (this.output += chunk))
    }
    this.child.once('close', (code) => (this.#exit = code))
  }

  async prints(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.output)
      if (found) return found
      if (this.#exit !== undefined) throw new Error(`it ended with ${this.#exit}: ${this.output}`)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
}

beforeAll(async () => {
  store = await mkdtemp(join(tmpdir(), 'signalbox-example-'))
  const server = new Program(process.execPath, ['--conditions=@signalbox/source', join(FOLDER, 'server.ts')], {
    PORT: '0',
    STORE_PATH: store,
  })
  base = (await server.prints(/listening on (\S+)/))[1] ?? ''
})

afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  await rm(store, { recursive: true, force: true })
})

async function send(route: string, event: object): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${base}/ce/${route}`, {
    method: 'POST',
    headers: { 'content-type': 'application/cloudevents+json' },
    body: JSON.stringify({ specversion: '1.0', id: randomUUID(), source: '/test', type: 'com.example.test', ...event }),
  })
  return { status: response.status, body: await response.json() }
}

describe('examples - cloudevents', () => {
  test('each subscriber is under forty lines', async () => {
    for (const file of ['server.ts', 'subscriber.ts', 'subscriber.py']) {
      expect((await readFile(join(FOLDER, file), 'utf8')).trimEnd().split('\n').length, file).toBeLessThan(40)
    }
  })

  test('the walk with curl shows what it says', async () => {
    const { stdout } = await promisify(execFile)('bash', [join(FOLDER, 'walk.sh'), base])
    const steps = stdout.split(/^# .*$/m).slice(1)
    expect(steps).toHaveLength(6)
    const [stored = '', queued = '', leased = '', acked = '', read = '', refused = ''] = steps
    expect(JSON.parse(stored)).toMatchObject({
      is_error: false,
      data: { events: [{ channel: 'orders', sequence: 1 }] },
    })
    expect(JSON.parse(queued)).toMatchObject({ data: { events: [{ channel: 'jobs' }] } })
    expect(JSON.parse(leased)).toMatchObject({
      data: { messages: [{ event: { id: '2', note: '100% café', data: 'brew the tea' }, receive_count: 1 }] },
    })
    expect(JSON.parse(acked)).toMatchObject({ is_error: false, data: { settled: 1 } })
    expect(read).toContain('event: cloudevent\nid: 1\ndata: {"specversion":"1.0"')
    expect(read).toContain('"price": 12345678901234567890.10}')
    expect(JSON.parse(refused)).toMatchObject({ is_error: true, message: 'reserved channel name' })
  })

  test('the TypeScript subscriber follows an events store', async () => {
    await send('send/event-store', { subject: 'followed', data: { n: 1 } })
    const program = new Program(process.execPath, [join(FOLDER, 'subscriber.ts'), base, 'followed'])
    await program.prints(/cloudevent 1 com\.example\.test \{"n":1\}/)
    await send('send/event-store', { subject: 'followed', data: { n: 2 } })
    await program.prints(/cloudevent 2 com\.example\.test \{"n":2\}/)
    expect(program.output.trim().split('\n')).toHaveLength(2)
  })

  test('the Python subscriber carries out commands and rejects what it does not understand', async (context) => {
    if (spawnSync('python3', ['--version']).status !== 0) {
      context.skip('python3 is not on this machine: the Python subscriber was not run')
    }
    const program = new Program('python3', [join(FOLDER, 'subscriber.py'), base, 'lights'])
    await program.prints(/subscribed/)
    expect(await send('send/command', { subject: 'lights', data: { on: true } })).toMatchObject({
      status: 202,
      body: { is_error: false, message: 'command executed' },
    })
    await program.prints(/lights on/)
    expect(await send('send/command', { subject: 'lights', data: 'on' })).toMatchObject({
      body: { is_error: true, message: 'rejected by the subscriber: the data must be an object with "on"' },
    })
  })

  test('the page shows what is stored, and stores what is typed into it', async () => {
    const html = await (await fetch(base)).text()
    const script = /<script>(.*)<\/script>/s.exec(html)?.[1] ?? ''
    expect(script).toContain('new EventSource(')
    // Its script runs in a process with node's own EventSource, on as much of a document as it uses.
    const program = new Program(process.execPath, ['--experimental-eventsource', '-e', `${DOCUMENT}\n${script}`], {
      PAGE: base,
    })
    await program.prints(/shown \d+: coffee \(com\.example\.order\.created from \/page\)/)
  })
})

const DOCUMENT = `
const ServerEvents = EventSource
globalThis.EventSource = class extends ServerEvents {
  constructor(url) {
    super(new URL(url, process.env.PAGE))
    this.addEventListener('open', () => submit({ preventDefault() {} }))
  }
}
const fetchAt = globalThis.fetch
globalThis.fetch = (url, init) => fetchAt(new URL(url, process.env.PAGE), {
  ...init,
  headers: { ...init.headers, origin: process.env.PAGE },
})
let submit
const elements = {
  ul: { prepend: (item) => console.log('shown ' + item.textContent) },
  form: {
    addEventListener: (_, listener) => { submit = listener },
    reset() {},
    elements: { order: { value: 'coffee' } },
  },
}
globalThis.document = { querySelector: (name) => elements[name], createElement: () => ({}) }
`

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'

import { NATS_SERVER, NatsServer, RequestFront } from '@signalbox/engine-nats/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { Addresses, Block } from '../testing/shown-session.ts'
import { blocks, PageServer, ROOT, shown, startServer } from '../testing/shown-session.ts'

/** Nodes that share a nats-server, behind fronts that hand each request to the next one. */
async function startNodes(stack: AsyncDisposableStack, count: number): Promise<Addresses> {
  const nats = stack.use(await NatsServer.start())
  const env = { ENGINE: 'nats', NATS_SERVERS: nats.url, LOG_LEVEL: 'error' }
  const nodes = await Promise.all(Array.from({ length: count }, () => startServer(stack, env)))
  const http = stack.use(await RequestFront.start(nodes.map((node) => node.http)))
  const api = stack.use(await RequestFront.start(nodes.map((node) => node.api)))
  return { http: http.url, api: api.url }
}

const onNats = NATS_SERVER !== undefined

/** What the README's commands are pasted to. */
const BROKERS = [
  { name: 'README', runs: true, open: startServer },
  {
    name: 'CL-11 - README, a node on NATS',
    runs: onNats,
    open: (stack: AsyncDisposableStack) => startNodes(stack, 1),
  },
  {
    name: 'CL-11 - README, each request at another node',
    runs: onNats,
    open: (stack: AsyncDisposableStack) => startNodes(stack, 3),
  },
] as const

let server: PageServer

/** Pastes every command, and compares what it prints with the block after it. */
async function answersAsShown(walk: readonly Block[]): Promise<void> {
  for (const [i, command] of walk.entries()) {
    if (command.language !== 'sh') continue
    expect(await server.run(command), command.text).toMatch(shown(walk[i + 1]?.text ?? ''))
  }
}

describe.each(BROKERS.filter(({ runs }) => runs))('$name', ({ open }) => {
  beforeAll(async () => {
    server = await PageServer.start(open)
  })

  afterAll(() => server[Symbol.asyncDispose]())

  test('the tour prints its documented answers when pasted', async () => {
    const tour = blocks('README.md', 'A five-minute tour')
    expect(tour.length).toBeGreaterThan(6)
    await answersAsShown(tour)
  })

  test('the example with an agent prints its documented answers when pasted', async () => {
    const [start, registered, ...calls] = blocks('README.md', 'Call an agent')
    const [, program = '', base = ''] = /^npx node (\S+) (\S+)\n$/.exec(server.here(start?.text ?? '')) ?? []
    const agent = spawn(process.execPath, [program, base], { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = once(agent, 'exit')
    try {
      const [line] = (await once(createInterface({ input: agent.stdout }), 'line')) as [string]
      expect(line).toMatch(shown(registered?.text ?? ''))
      expect(calls).toHaveLength(6)
      await answersAsShown(calls)
    } finally {
      agent.kill('SIGTERM')
    }
    expect(await ended).toEqual([0, null])
    expect(await (await fetch(`${server.addresses.http}/agents`)).json()).toEqual([])
  })

  test('the CloudEvents example prints its documented output', async () => {
    const walk = join(ROOT, 'examples/cloudevents/walk.sh')
    const { stdout } = await promisify(execFile)('bash', [walk, server.addresses.http])
    const [stored = '', queued = '', leased = '', acked = '', read = '', refused = ''] = stdout
      .split(/^# .*$/m)
      .slice(1)
    expect(JSON.parse(stored)).toMatchObject({ data: { events: [{ channel: 'orders', sequence: 1 }] } })
    expect(JSON.parse(queued)).toMatchObject({ data: { events: [{ channel: 'jobs' }] } })
    expect(JSON.parse(leased)).toMatchObject({ data: { messages: [{ event: { id: '2', data: 'brew the tea' } }] } })
    expect(JSON.parse(acked)).toMatchObject({ is_error: false, data: { settled: 1 } })
    expect(read).toContain('"price": 12345678901234567890.10}')
    expect(JSON.parse(refused)).toMatchObject({ is_error: true, message: 'reserved channel name' })
  })

  test('the client program lists the tools', async () => {
    const program = blocks('README.md', 'Connect a model').find((block) => block.language === 'ts')
    const file = join(ROOT, 'tools', `readme-client-${process.pid}.mts`)
    writeFileSync(file, server.here(program?.text ?? ''))
    try {
      const { stdout } = await promisify(execFile)(process.execPath, [file])
      expect(stdout).toContain('queue_send queue_receive')
    } finally {
      rmSync(file)
    }
  })
})

test('README - the two commands that do all the set-up are there', () => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  expect(readme).toContain('npm ci && npm start')
  expect(readme).toContain('npm ci && npm test')
})

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'

import { NatsServer, RequestFront } from '@signalbox/engine-nats/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { Addresses, Block } from './pages.ts'
import { blocks, PageServer, ROOT, shown, startServer } from './pages.ts'

/** Nodes that share a nats-server, behind fronts that hand each request to the next one. */
export async function startNodes(stack: AsyncDisposableStack, count: number): Promise<Addresses> {
  const nats = stack.use(await NatsServer.start())
  const env = { ENGINE: 'nats', NATS_SERVERS: nats.url, LOG_LEVEL: 'error' }
  const nodes = await Promise.all(Array.from({ length: count }, () => startServer(stack, env)))
  const http = stack.use(await RequestFront.start(nodes.map((node) => node.http)))
  const api = stack.use(await RequestFront.start(nodes.map((node) => node.api)))
  return { http: http.url, api: api.url }
}

/** Pastes every command, and compares what it prints with the block after it. */
async function answersAsShown(server: PageServer, walk: readonly Block[]): Promise<void> {
  for (const [i, command] of walk.entries()) {
    if (command.language !== 'sh') continue
    expect(await server.run(command), command.text).toMatch(shown(walk[i + 1]?.text ?? ''))
  }
}

export interface ReadmeBroker {
  readonly name: string
  readonly open: (stack: AsyncDisposableStack) => Promise<Addresses>
}

/** The broker of the README: one process on the embedded engine. */
export const EMBEDDED: ReadmeBroker = { name: 'README', open: startServer }

/** Tests the commands of the README against a broker. Skips the tests if `runs` is false. */
export function describeReadme(broker: ReadmeBroker, runs = true): void {
  describe.runIf(runs).each([broker])('$name', ({ open }) => {
    let server: PageServer

    // Several processes start, one after the other on a busy machine.
    beforeAll(async () => {
      server = await PageServer.start(open)
    }, 90_000)

    afterAll(() => server[Symbol.asyncDispose]())

    test('the tour prints its documented answers when pasted', async () => {
      const tour = blocks('README.md', 'A five-minute tour')
      expect(tour.length).toBeGreaterThan(6)
      await answersAsShown(server, tour)
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
        await answersAsShown(server, calls)
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
}

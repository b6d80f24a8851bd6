import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { testServer } from '@signalbox/testkit/test-server'
import { expect, test, vi } from 'vitest'

import type { EventsOptions } from '../src/events.ts'
import { mcpEvents } from '../src/events.ts'
import { createMcpFetchHandler, mcpConnector } from '../src/index.ts'
import { mcpConnector as fastifyConnector } from '../src/fastify.ts'
import { startHost } from './mcp-host.ts'

/** Calls a public function with arguments that do not compile. */
function callWith(call: (...args: never[]) => unknown, ...args: unknown[]): () => void {
  return () => void Reflect.apply(call, undefined, args)
}

const FACTORIES = { mcpConnector, createMcpFetchHandler, fastifyConnector }

test.each(Object.entries(FACTORIES))('options - %s checks the broker and the options', async (_name, factory) => {
  const { broker } = await startHost()
  expect(callWith(factory)).toThrow('mcpConnector: broker: undefined is not allowed; allowed: a Broker')
  expect(callWith(factory, { broker })).toThrow('pass the member `broker` of it')
  expect(callWith(factory, broker, null)).toThrow('mcpConnector: options: null is not allowed; allowed: an object')
  expect(callWith(factory, broker, { maxStream: 1, drainMs: '5' })).toThrow(
    /^mcpConnector: maxStream: unknown option; did you mean maxStreams\?; allowed: .*; drainMs: "5" is not allowed; allowed: a number$/,
  )
  expect(callWith(factory, broker, { tasks: {} })).toThrow('mcpConnector tasks: store: it is missing')
  expect(callWith(factory, broker, { events: {} })).toThrow('allowed: the result of mcpEvents()')
})

test('options - mcpEvents checks its options and the event types', async () => {
  const { system } = await startHost()
  expect(callWith(mcpEvents, {})).toThrow('mcpEvents: system: it is missing')
  expect(callWith(mcpEvents, { system, codes: 'new' })).toThrow('events.codes: new; allowed are auto, sketch, sep')
  expect(() => mcpEvents({ system, heartbeatMs: 0 })).toThrow('allowed is a number from 1 to 30000')
  const type: EventsOptions['types'] = [{ name: 'a b', description: '', channel: 'orders', payloadSchema: {} }]
  expect(() => mcpEvents({ system, types: type })).toThrow('event type "a b": the name must have 1 to 128 letters')
})

test('options - an engine that was not awaited is named', () => {
  const engine = openEmbeddedEngine({ path: '' })
  engine.catch(() => {})
  expect(callWith(mcpConnector, engine)).toThrow('a Promise (await it)')
})

test('options - a failure that no client sees is one line on stderr without a hook', async () => {
  const host = await startHost()
  const lines: string[] = []
  const written = vi.spyOn(process.stderr, 'write').mockImplementation((text) => lines.push(String(text)) > 0)
  try {
    const connector = mcpConnector(host.broker, {
      authenticator: {
        authenticate() {
          throw new Error('the key store is closed')
        },
      },
    })
    const { url } = await testServer(connector.handler)
    await fetch(`${url}/mcp?secret=1`, { method: 'POST', body: '{}' })
    await connector.close()
  } finally {
    written.mockRestore()
  }
  expect(lines).toEqual([
    expect.stringMatching(/^signalbox: request failed: POST \/mcp: Error: the key store is closed \| at .*\n$/),
  ])
})

import { createBroker } from '@signalbox/broker-core'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'
import { expect, test } from 'vitest'

import { openEmbeddedEngine } from '../src/index.ts'

/** Calls a public method as JavaScript may: with too few arguments. */
async function failureOf(object: object, method: string, ...args: unknown[]): Promise<string> {
  try {
    await Reflect.apply(Reflect.get(object, method), object, args)
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
  return 'no failure'
}

test('arguments - every public function of the broker explains a wrong argument', async () => {
  await using folder = await TemporaryFolder.create('arguments')
  await using engine = await openEmbeddedEngine({ path: folder.path })
  const { broker } = createBroker(engine)
  const handle = broker.as({ clientId: 'c' })
  const parts = ['queues', 'events', 'eventsStore', 'commands', 'queries', 'channels'] as const
  const failures: string[] = []
  for (const part of parts) {
    const object = handle[part]
    for (const method of Object.getOwnPropertyNames(Object.getPrototypeOf(object))) {
      if (method === 'constructor') continue
      failures.push(`${part}.${method}(): ${await failureOf(object, method)}`)
      failures.push(`${part}.${method}('a'): ${await failureOf(object, method, 'a')}`)
    }
  }
  expect(failures.filter((failure) => /Cannot|undefined \(|not iterable|is not a function/.test(failure))).toEqual([])
})

test('arguments - errors name the allowed values', async () => {
  await using folder = await TemporaryFolder.create('arguments')
  await using engine = await openEmbeddedEngine({ path: folder.path })
  const { broker } = createBroker(engine)
  const { queries, queues } = broker.as({ clientId: 'c' })
  expect(await failureOf(broker, 'as')).toContain('invalid argument caller: it is missing; allowed is an object')
  expect(await failureOf(broker, 'as', {})).toContain('invalid argument caller.clientId: it is missing')
  expect(await failureOf(queues, 'send', 'q')).toContain('invalid argument input: it is missing')
  expect(await failureOf(queues, 'ack')).toContain(
    'invalid argument receipts: it is missing; allowed is a list of texts',
  )
  expect(await failureOf(queries, 'send', 'q', { body: new Uint8Array() })).toContain('timeoutMs')
  expect(await failureOf({ createBroker }, 'createBroker')).toContain('createBroker: engine: undefined is not allowed')
  expect(await failureOf({ createBroker }, 'createBroker', engine, { observer: [] })).toContain(
    'observer: unknown option; did you mean observers?',
  )
  expect(await failureOf({ openEmbeddedEngine }, 'openEmbeddedEngine')).toContain('options: undefined is not allowed')
  expect(await failureOf({ openEmbeddedEngine }, 'openEmbeddedEngine', { path: 'x', maxMessagesBytes: 1 })).toContain(
    'maxMessagesBytes: unknown option; did you mean maxMessageBytes?',
  )
})

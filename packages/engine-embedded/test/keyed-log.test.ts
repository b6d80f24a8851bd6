import type { BrokerHandle } from '@signalbox/broker-core'
import { createBroker, decodeText, encodeText } from '@signalbox/broker-core'
import type { KeyedEntry, KeyedLogFollower, KeyedLogSink } from '@signalbox/broker-core/internal'
import { KeyedLog } from '@signalbox/broker-core/internal'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { testFolder } from '@signalbox/testkit/test-folder'
import { until } from '@signalbox/testkit/until'
import * as fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'

const CHANNEL = '_AGENTS_.keyed'

/** A handle whose reads and subscriptions a test can fail. */
interface Bench {
  readonly system: BrokerHandle
  /** Called before each read of the history. */
  beforeRead: () => void
  /** Ends the open subscriptions, as an engine does that lost its connection. */
  endSubscriptions(error: Error): void
}

async function openBench(): Promise<Bench> {
  const engine = await openEmbeddedEngine({ path: testFolder() })
  onTestFinished(() => engine.close())
  const ends = new Set<(error: Error) => void>()
  const { eventsStore } = engine
  const bench = {
    beforeRead: () => {},
    endSubscriptions(error: Error) {
      for (const end of ends) end(error)
      ends.clear()
    },
  }
  const read: typeof eventsStore.read = async (...args) => {
    bench.beforeRead()
    return eventsStore.read(...args)
  }
  const subscribe: typeof eventsStore.subscribe = async (...args) => {
    const subscription = await eventsStore.subscribe(...args)
    const ended = Promise.withResolvers<Error | undefined>()
    void subscription.closed.then(ended.resolve)
    ends.add((error) => {
      ended.resolve(error)
      void subscription.close()
    })
    return {
      closed: ended.promise,
      close: () => subscription.close(),
      [Symbol.asyncDispose]: () => subscription.close(),
    }
  }
  const faulty = new Proxy(engine, {
    get(target, name) {
      if (name === 'eventsStore') return new Proxy(eventsStore, { get: (_, member) => members(member) })
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const members = (member: string | symbol): unknown => {
    if (member === 'read') return read
    if (member === 'subscribe') return subscribe
    const value: unknown = Reflect.get(eventsStore, member)
    return typeof value === 'function' ? value.bind(eventsStore) : value
  }
  return Object.assign(bench, { system: createBroker(faulty).system })
}

/** The values of a log as one node knows them. */
class Copy implements KeyedLogSink {
  readonly values = new Map<string, string>()
  readonly failures: string[] = []
  readonly calls: string[] = []
  readonly #ended = new AbortController()
  readonly follower: KeyedLogFollower

  constructor(log: KeyedLog, mayRetry = (): boolean => true) {
    this.follower = log.follow(this, { signal: this.#ended.signal, mayRetry })
    onTestFinished(() => this.close())
  }

  readonly restart = (): void => void this.calls.push('restart')
  readonly retain = (keys: ReadonlySet<string>): void => {
    this.calls.push('retain')
    for (const key of this.values.keys()) if (!keys.has(key)) this.values.delete(key)
  }
  readonly current = (): void => void this.calls.push('current')
  readonly failed = (error: unknown): void => void this.failures.push(String(error))

  readonly entry = ({ key, body, tombstone }: KeyedEntry, live: boolean): void => {
    this.calls.push(live ? 'live' : 'history')
    const text = decodeText(body)
    if (text === 'poison') throw new TypeError('it is poisoned')
    if (tombstone) this.values.delete(key)
    else this.values.set(key, text ?? '')
  }

  get content(): Record<string, string> {
    return Object.fromEntries(this.values)
  }

  async close(): Promise<void> {
    this.#ended.abort()
    await this.follower.closed
  }
}

const text = (value: string) => ({ body: encodeText(value) })

test('keyed log - followers know the last value of each key, from history and from later writes', async () => {
  const { system } = await openBench()
  const log = new KeyedLog(system, CHANNEL)
  await log.write('a', text('1'))
  await log.write('gone', text('1'))
  await log.write('gone', undefined)
  const copy = new Copy(log)
  await copy.follower.opened
  expect(copy.content).toEqual({ a: '1' })
  const { sequence } = await log.write('b', text('2'))
  await copy.follower.applied(sequence)
  expect(copy.content).toEqual({ a: '1', b: '2' })
  expect(copy.calls.filter((call) => call !== 'history')).toEqual(['restart', 'retain', 'current', 'live'])
  await copy.close()
  expect(copy.follower.current).toBe(false)
})

test('keyed log - a write with another last sequence than expected is a conflict, also after a deletion', async () => {
  const { system } = await openBench()
  const log = new KeyedLog(system, CHANNEL)
  const { sequence } = await log.write('a', text('1'), 0)
  await expect(log.write('a', text('2'), 0)).rejects.toMatchObject({ code: 'CONFLICT' })
  const deleted = await log.write('a', undefined, sequence)
  await expect(log.write('a', text('2'), 0)).rejects.toMatchObject({ code: 'CONFLICT' })
  expect(await log.last('a')).toMatchObject({ sequence: deleted.sequence, tombstone: true })
  await log.write('a', text('3'), deleted.sequence)
  expect(decodeText((await log.last('a'))?.body ?? new Uint8Array())).toBe('3')
  expect(await log.last('never')).toBeUndefined()
})

test('keyed log - after an interruption a follower reads all entries again and notices deleted ones', async () => {
  const bench = await openBench()
  const log = new KeyedLog(bench.system, CHANNEL)
  await log.write('stays', text('1'))
  const { sequence } = await log.write('goes', text('1'))
  const copy = new Copy(log)
  await copy.follower.opened
  bench.endSubscriptions(new Error('the connection is gone'))
  await until(() => !copy.follower.current)
  await log.write('goes', undefined, sequence)
  await log.write('comes', text('2'))
  let failing = 1
  bench.beforeRead = () => {
    if (failing-- > 0) throw new Error('not yet')
  }
  await until(() => copy.follower.current)
  expect(copy.content).toEqual({ comes: '2', stays: '1' })
  expect(copy.failures).toEqual(['Error: the connection is gone', 'Error: not yet'])
})

test('keyed log - an entry that cannot be read is reported and left out, and the next one follows', async () => {
  const { system } = await openBench()
  const log = new KeyedLog(system, CHANNEL)
  await log.create()
  await system.eventsStore.publish(CHANNEL, text('without a key'))
  const copy = new Copy(log)
  await copy.follower.opened
  await log.write('bad', text('poison'))
  const { sequence } = await log.write('good', text('1'))
  await copy.follower.applied(sequence)
  expect(copy.content).toEqual({ good: '1' })
  expect(copy.failures).toEqual([
    `Error: entry 1 of ${CHANNEL} was left out: it has no key`,
    `Error: entry 2 of ${CHANNEL} was left out: it is poisoned`,
  ])
})

test('keyed log - a follower that may not wait ends with the first error, and another one waits', async () => {
  const bench = await openBench()
  const log = new KeyedLog(bench.system, CHANNEL)
  let failing = 2
  bench.beforeRead = () => {
    if (failing-- > 0) throw new Error('not yet')
  }
  const impatient = new Copy(log, () => false)
  await expect(impatient.follower.opened).rejects.toThrow('not yet')
  await impatient.follower.closed
  const patient = new Copy(log)
  await patient.follower.opened
  expect(patient.failures).toEqual(['Error: not yet'])
})

test('keyed log - closing a follower ends the wait for an entry that never arrives', async () => {
  const { system } = await openBench()
  const copy = new Copy(new KeyedLog(system, CHANNEL))
  await copy.follower.opened
  const waiting = copy.follower.applied(1_000)
  await copy.close()
  await expect(waiting).resolves.toBeUndefined()
})

test('keyed log - every follower ends with the acknowledged writes, in any order of writes and failures', async () => {
  const key = fc.constantFrom('a', 'b', 'c')
  const step = fc.oneof(
    fc.record({ does: fc.constant('write' as const), key, value: fc.string() }),
    fc.record({ does: fc.constant('delete' as const), key }),
    fc.record({ does: fc.constant('interrupt' as const) }),
    fc.record({ does: fc.constant('follow' as const) }),
  )
  const bench = await openBench()
  let runs = 0
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const log = new KeyedLog(bench.system, `${CHANNEL}.${runs++}`)
      const copies = [new Copy(log)]
      const model = new Map<string, { readonly sequence: number; readonly value: string | undefined }>()
      for (const one of steps) {
        if (one.does === 'interrupt') bench.endSubscriptions(new Error('gone'))
        else if (one.does === 'follow') copies.push(new Copy(log))
        else {
          const value = one.does === 'write' && one.value !== 'poison' ? one.value : undefined
          const expected = model.get(one.key)?.sequence ?? 0
          const { sequence } = await log.write(one.key, value === undefined ? undefined : text(value), expected)
          model.set(one.key, { sequence, value })
        }
      }
      const last = Math.max(0, ...[...model.values()].map(({ sequence }) => sequence))
      const known = [...model].flatMap(([name, { value }]) => (value === undefined ? [] : [[name, value] as const]))
      for (const copy of copies) {
        await copy.follower.opened
        await until(() => copy.follower.current)
        await copy.follower.applied(last)
        expect(copy.content).toEqual(Object.fromEntries(known))
        await copy.close()
      }
    }),
    { numRuns: 12, seed: 7 },
  )
})

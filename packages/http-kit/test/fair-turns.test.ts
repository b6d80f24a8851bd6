import { countTicks } from '@signalbox/testkit/count-ticks'
import { expect, onTestFinished, test, vi } from 'vitest'

import { FairTurns } from '../src/internal.ts'

/** Blocks the event loop, as dear work does. */
function block(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

/** Runs pieces of work, and returns their names in the order in which they ran. */
function order(turns: FairTurns, pieces: readonly (readonly [account: string, ms: number])[]): Promise<string[]> {
  const ran: string[] = []
  return new Promise((resolve) => {
    for (const [account, ms] of pieces) {
      turns.run(account, () => {
        block(ms)
        if (ran.push(account) === pieces.length) resolve(ran)
      })
    }
  })
}

test('fair turns - accounts take turns, however much work one of them has', async () => {
  const ran = await order(new FairTurns(), [
    ...Array.from({ length: 20 }, () => ['many', 0] as const),
    ['one', 0],
    ['other', 0],
  ])
  expect(ran.slice(0, 4)).toEqual(['many', 'one', 'other', 'many'])
})

test('fair turns - at most one piece of work runs in a tick of the event loop', async () => {
  const tick = countTicks()
  const turns = new FairTurns()
  const ticks: number[] = []
  await new Promise<void>((resolve) => {
    for (const account of ['a', 'a', 'b', 'c']) {
      turns.run(account, () => {
        if (ticks.push(tick()) === 4) resolve()
      })
    }
  })
  expect(new Set(ticks).size).toBe(4)
})

test('fair turns - an account that blocked the loop for long rests, and the others do not wait for it', async () => {
  const ran = await order(new FairTurns(), [
    ['dear', 40],
    ['dear', 0],
    ['cheap', 0],
    ['cheap', 0],
  ])
  expect(ran).toEqual(['dear', 'cheap', 'cheap', 'dear'])
})

test('fair turns - an account rests for long if others have requests, and as long as its work took if it is alone', async () => {
  let later = 0
  const now = performance.now.bind(performance)
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + later)
  onTestFinished(() => clock.mockRestore())
  const turns = new FairTurns()
  const rest = async (): Promise<number> => {
    turns.arrived('dear')
    await turns.turn('dear', () => block(40))
    const begin = performance.now()
    await turns.turn('dear', () => {})
    return performance.now() - begin
  }
  turns.arrived('other')
  const amongOthers = await rest()
  expect(amongOthers).toBeGreaterThan(700)
  later = 1_100
  expect(await rest()).toBeLessThan(amongOthers)
})

test('fair turns - an account rests after it read megabytes into memory, and another one does not', async () => {
  const turns = new FairTurns()
  turns.arrived('other')
  turns.arrived('dear')
  expect(turns.turnAfterOthers('dear')).toBeUndefined()
  turns.restAfter('dear', 2 ** 20)
  expect(turns.turnAfterOthers('other')).toBeUndefined()
  const begin = performance.now()
  await turns.turnAfterOthers('dear')
  expect(performance.now() - begin).toBeGreaterThan(10)
  expect(turns.turnAfterOthers('dear')).toBeUndefined()
})

test('fair turns - an account that is alone on the server does not rest', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const turns = new FairTurns()
  turns.arrived('other')
  turns.arrived('alone')
  vi.advanceTimersByTime(1_100)
  turns.arrived('alone')
  turns.restAfter('alone', 2 ** 20)
  expect(turns.turnAfterOthers('alone')).toBeUndefined()
  turns.arrived('other')
  turns.restAfter('alone', 2 ** 20)
  expect(turns.turnAfterOthers('alone')).toBeDefined()
})

test('fair turns - a call of an account waits for the dear work that the account began before', async () => {
  const turns = new FairTurns()
  const steps: string[] = []
  turns.run('a', () => steps.push('dear work'))
  await turns.turnAfterOthers('a')
  expect(steps).toEqual(['dear work'])
})

test('fair turns - requests go before the next piece of work, and do not hold it up for long', async () => {
  const turns = new FairTurns()
  let requests = 0
  // A request arrives in each tick.
  const arrive = (): void => {
    turns.giveWay()
    requests++
    arriving = setImmediate(arrive)
  }
  let arriving = setImmediate(arrive)
  onTestFinished(() => clearImmediate(arriving))
  const before = await Promise.all([turns.turn('a', () => requests), turns.turn('a', () => requests)])
  expect(before[1] - before[0]).toBeGreaterThan(3)
})

test('fair turns - work may ask for its next piece, and an error of one piece does not keep the others', async () => {
  const turns = new FairTurns()
  const failed = new Promise((resolve) => process.once('uncaughtException', resolve))
  const done = new Promise<string>((resolve) => {
    turns.run('a', () => {
      turns.run('a', () => resolve('done'))
      throw new Error('a piece failed')
    })
  })
  await expect(done).resolves.toBe('done')
  await expect(failed).resolves.toMatchObject({ message: 'a piece failed' })
})

import { median, quantile } from '@signalbox/testkit/figures'
import { parseSamples, total } from '@signalbox/testkit/prometheus'
import { Random } from '@signalbox/testkit/random'
import { expect, test } from 'vitest'

import { comparedCpu, figure, joined, judged, topSelfTime, verdict } from '../bench/report.ts'
import { interleave, ratios } from '../bench/row.ts'
import { ROWS } from '../bench/rows/index.ts'

function frame(functionName: string) {
  return { functionName, url: 'file:///x/packages/p/src/f.ts', lineNumber: 9 }
}

function draw(seed: number): number[] {
  const random = new Random(seed)
  return Array.from({ length: 5 }, () => random.integer(1, 1000))
}

test('bench - medians and quantiles', () => {
  expect(median([3, 1, 2])).toBe(2)
  expect(median([4, 1, 2, 3])).toBe(2.5)
  expect(quantile([0, 10], 0.99)).toBeCloseTo(9.9)
})

test('bench - a verdict knows which way is better', () => {
  const ratio = { must: 0.6, aim: 0.75, better: 'more', unit: '×' } as const
  expect([0.5, 0.6, 0.75].map((value) => verdict(value, ratio))).toEqual(['missed', 'must', 'aim'])
  const delay = { must: 5, aim: 3, better: 'less', unit: 'ms' } as const
  expect([6, 5, 3].map((value) => verdict(value, delay))).toEqual(['missed', 'must', 'aim'])
  expect(verdict(1, undefined)).toBe('–')
  const measure = { name: 'n', subject: 's', goal: ratio, samples: [0.1, 0.7, 0.9], details: {} }
  expect(judged(measure)).toMatchObject({ median: 0.7, verdict: 'must' })
})

test('bench - alternatives take turns, and ratios are of the same round', async () => {
  const order: string[] = []
  const alternative = (label: string, values: number[]) => () => {
    order.push(label)
    return Promise.resolve({ cost: values.shift() ?? 0 })
  }
  const [a = [], b = []] = await interleave(2, [alternative('a', [2, 4]), alternative('b', [1, 8])])
  expect(order).toEqual(['a', 'b', 'b', 'a'])
  expect(ratios(a, b, ({ cost }) => cost)).toEqual([2, 0.5])
})

/** What a run of a row measures of two commits. */
function measured(own: number, other: number) {
  return [own, other].map((cpu, i) => {
    const details = { 'send CPU µs': cpu, 'yardstick CPU µs': 5, 'sends/s': 1 }
    return { name: 'n', subject: ['working tree', 'abc'][i] ?? '', goal: undefined, samples: [cpu], details }
  })
}

test('bench - several sets of processes count together, and commits are compared within each set', () => {
  const runs = [measured(10, 20), measured(60, 40), measured(30, 30)]
  expect(joined(runs)[0]).toMatchObject({ samples: [10, 60, 30], details: { 'send CPU µs': 30 } })
  const compared = [{ name: 'n', subject: 'abc', component: 'send CPU µs', ratios: [0.5, 1.5, 1] }]
  expect(comparedCpu(runs, 'working tree')).toEqual(compared)
  // A row may name the other commit first.
  expect(
    comparedCpu(
      runs.map((measures) => measures.toReversed()),
      'working tree',
    ),
  ).toEqual(compared)
  expect(
    comparedCpu(
      runs.map((measures) => measures.slice(0, 1)),
      'working tree',
    ),
  ).toEqual([])
})

test('bench - every row has a unique id', () => {
  expect(new Set(ROWS.map(({ id }) => id)).size).toBe(ROWS.length)
})

test('bench - figures read well', () => {
  expect([12_345.6, 123.4, 12.34, 1.234].map(figure)).toEqual(['12,346', '123', '12.3', '1.23'])
})

test('bench - a profile names the functions with the most self time, idle time left out', () => {
  const lines = topSelfTime({
    nodes: [
      { id: 1, callFrame: frame('busy') },
      { id: 2, callFrame: { functionName: '(idle)', url: '', lineNumber: -1 } },
      { id: 3, callFrame: frame('rare') },
    ],
    samples: [1, 2, 3, 1],
    timeDeltas: [600, 5000, 100, 300],
  })
  expect(lines.slice(1)).toEqual([' 90.0 %  busy  packages/p/src/f.ts:10', ' 10.0 %  rare  packages/p/src/f.ts:10'])
})

test('harness - Prometheus text is read with and without labels', () => {
  const samples = parseSamples('# HELP a b\na_total{x="1"} 2\na_total{x="2"} 3\nb 4e-3\n')
  expect(total(samples, 'a_total')).toBe(5)
  expect(total(samples, 'b')).toBe(0.004)
  expect(() => total(samples, 'c')).toThrow('no metric c')
})

test('harness - a seed repeats its choices', () => {
  expect(draw(7)).toEqual(draw(7))
  expect(draw(7)).not.toEqual(draw(8))
})

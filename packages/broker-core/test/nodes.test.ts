import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

import { Nodes } from '../src/entries/internal.ts'

const LEASE_MS = 1_000

/** The nodes as `me` sees them; `pass` lets time pass while the named nodes show four signs of life in each lease. */
function openNodes(self = 'me') {
  const nodes = new Nodes(self, { leaseMs: LEASE_MS, shared: true })
  const pass = (ms: number, ...living: readonly string[]): void => {
    for (let passed = 0; passed < ms; passed += LEASE_MS / 4) {
      vi.advanceTimersByTime(LEASE_MS / 4)
      for (const node of living) {
        if (node === self) nodes.renewed(performance.now())
        else nodes.heard(node)
      }
    }
  }
  return { nodes, pass }
}

describe('M19 nodes', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
  afterEach(() => void vi.useRealTimers())

  test('M19 - a node that shows signs of life is not lost, and one that stops is lost after its lease', () => {
    const { nodes, pass } = openNodes()
    expect(nodes.isLost('other')).toBe(false)
    pass(5 * LEASE_MS, 'me', 'other')
    expect(nodes.isLost('other')).toBe(false)
    pass(LEASE_MS, 'me')
    expect(nodes.isLost('other')).toBe(false)
    pass(LEASE_MS / 4, 'me')
    expect(nodes.isLost('other')).toBe(true)
  })

  test('M19 - a node that was cut off judges no other, and gives each a whole lease afterwards', () => {
    const { nodes, pass } = openNodes()
    pass(LEASE_MS, 'me', 'other')
    nodes.gone('stopped')
    pass(5 * LEASE_MS)
    expect(nodes.held).toBe(false)
    expect(nodes.isLost('other')).toBe(false)
    nodes.renewed(performance.now())
    expect([nodes.isLost('other'), nodes.isLost('stopped')]).toEqual([false, true])
    pass(LEASE_MS, 'me')
    expect(nodes.isLost('other')).toBe(false)
    pass(LEASE_MS / 4, 'me')
    expect(nodes.isLost('other')).toBe(true)
  })

  test('M19 - the first question about a node starts its lease, again after it was forgotten', () => {
    const { nodes, pass } = openNodes()
    pass(LEASE_MS, 'me')
    expect(nodes.isLost('other')).toBe(false)
    pass(2 * LEASE_MS, 'me')
    expect(nodes.isLost('other')).toBe(true)
    nodes.retain(new Set())
    expect(nodes.isLost('other')).toBe(false)
  })

  test('nodes - a node stops its own work before another node takes over', () => {
    const { nodes, pass } = openNodes()
    const { nodes: observer } = openNodes('observer')
    pass(LEASE_MS / 4, 'me')
    observer.heard('me')
    pass(LEASE_MS / 2)
    expect(nodes.held).toBe(true)
    pass(LEASE_MS / 4)
    observer.renewed(performance.now())
    expect([nodes.held, observer.isLost('me')]).toEqual([false, false])
  })

  test('nodes - without other nodes on the store the own lease never ends, and every other node is lost', () => {
    const nodes = new Nodes('me', { leaseMs: LEASE_MS, shared: false })
    expect([nodes.held, nodes.isLost('other')]).toEqual([true, true])
  })

  test('nodes - a node that stopped is lost at once, and one that is silent for long can be forgotten', () => {
    const { nodes, pass } = openNodes()
    pass(LEASE_MS, 'me', 'silent', 'stopped')
    nodes.gone('stopped')
    expect([nodes.isLost('stopped'), nodes.isLost('silent')]).toEqual([true, false])
    pass(4 * LEASE_MS, 'me')
    expect(nodes.lostFor(2 * LEASE_MS)).toEqual(['silent'])
    nodes.forget('silent')
    expect(nodes.lostFor(0)).toEqual([])
  })

  test('nodes - all live nodes agree on the one that takes over a key, and the keys are spread', () => {
    const names = ['a', 'b', 'c']
    const views = names.map((name) => {
      const { nodes } = openNodes(name)
      nodes.renewed(performance.now())
      for (const other of names) nodes.heard(other)
      nodes.gone('d')
      return nodes
    })
    const first = Array.from({ length: 60 }, (_, key) => views.map((view) => view.isFirstFor(`key-${key}`)))
    expect(first.map((each) => each.filter(Boolean).length)).toEqual(Array.from({ length: 60 }, () => 1))
    for (const index of names.keys()) expect(first.filter((each) => each[index]).length).toBeGreaterThan(5)
  })
})

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

import { NodeLeases } from '../src/tasks/node-leases.ts'

const LEASE_MS = 1_000

/** Leases of node `me`; `pass` lets time pass while the named nodes announce themselves four times in each lease. */
function leases() {
  const nodes = new NodeLeases('me', LEASE_MS)
  const pass = (ms: number, ...announcing: readonly string[]): void => {
    for (let passed = 0; passed < ms; passed += LEASE_MS / 4) {
      vi.advanceTimersByTime(LEASE_MS / 4)
      for (const node of announcing) nodes.renew(node)
    }
  }
  return { nodes, pass }
}

describe('M19 leases of nodes', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
  afterEach(() => void vi.useRealTimers())

  test('M19 - a node that announces itself is not lost, and one that stops is lost after its lease', () => {
    const { nodes, pass } = leases()
    expect(nodes.isLost('other')).toBe(false)
    pass(5 * LEASE_MS, 'me', 'other')
    expect(nodes.isLost('other')).toBe(false)
    pass(LEASE_MS, 'me')
    expect(nodes.isLost('other')).toBe(false)
    pass(LEASE_MS / 4, 'me')
    expect(nodes.isLost('other')).toBe(true)
  })

  test('M19 - a node that does not hear itself judges no other, and gives each a whole lease afterwards', () => {
    const { nodes, pass } = leases()
    pass(LEASE_MS, 'me', 'other')
    pass(5 * LEASE_MS)
    expect(nodes.isLost('other')).toBe(false)
    nodes.renew('me')
    expect(nodes.isLost('other')).toBe(false)
    pass(LEASE_MS, 'me')
    expect(nodes.isLost('other')).toBe(false)
    pass(LEASE_MS / 4, 'me')
    expect(nodes.isLost('other')).toBe(true)
  })

  test('M19 - the first question about a node starts its lease, again after it was forgotten', () => {
    const { nodes, pass } = leases()
    pass(LEASE_MS, 'me')
    expect(nodes.isLost('other')).toBe(false)
    pass(2 * LEASE_MS, 'me')
    expect(nodes.isLost('other')).toBe(true)
    nodes.retain(new Set())
    expect(nodes.isLost('other')).toBe(false)
  })
})

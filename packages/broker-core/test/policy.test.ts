import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import type { Policy } from '@signalbox/broker-core'
import { Authorization, parsePolicy, POLICY_ACTIONS, RESOURCE_TYPES, PolicyError } from '@signalbox/broker-core'
import { channelMatcher } from '@signalbox/broker-core/internal'

const ANYTHING = { clients: '*', actions: '*', patterns: '*', channels: '*', effect: 'allow' }

function problemsOf(input: unknown): readonly string[] {
  try {
    parsePolicy(input)
  } catch (error) {
    if (error instanceof PolicyError) return error.problems
    throw error
  }
  return []
}

function policy(...rules: readonly object[]): Policy {
  return parsePolicy({ rules: rules.map((rule) => Object.assign({}, ANYTHING, rule)) })
}

const alice = { clientId: 'alice' }

function subscribed(channels: string, ...rules: readonly object[]): boolean {
  return new Authorization(policy(...rules)).permitsAll(alice, 'subscribe', 'events', channels)
}

/** A glob as a regular expression: slow, and plainly right. */
function naive(glob: string): RegExp {
  return new RegExp(
    `^${glob
      .replaceAll('.', String.raw`\.`)
      .replaceAll('*', '.*')
      .replaceAll('?', '.')}$`,
  )
}

describe('S4 - reading a policy', () => {
  test('S4 - a rule is lists of globs, or single ones, and an effect', () => {
    const { rules } = policy({ clients: ['a', 'b*'], actions: ['send', 're*'], patterns: 'events*', channels: ['x'] })
    expect(rules).toHaveLength(1)
    expect([...(rules[0]?.actions ?? [])]).toEqual(['send', 'receive', 'read', 'respond', 'register'])
    expect([...(rules[0]?.patterns ?? [])]).toEqual(['events', 'events_store'])
  })

  test.each([
    [null, 'it is empty; allowed is {rules: […]}'],
    ['rules', 'it is "rules"'],
    [[], 'it is a list'],
    [{}, 'rules: it is missing'],
    [{ rules: {} }, 'rules: it is an object'],
    [{ rules: [], rule: 1 }, 'unknown key "rule"; allowed is rules'],
    [{ rules: [7] }, 'rule 0: it is 7'],
    [{ rules: [{ ...ANYTHING, channel: 'x' }] }, 'rule 0: unknown key "channel"'],
    [{ rules: [{ ...ANYTHING, effect: 'Allow' }] }, 'rule 0: effect is "Allow"; allowed are allow, deny'],
    [{ rules: [{ ...ANYTHING, effect: undefined }] }, 'rule 0: effect is missing'],
    [{ rules: [{ ...ANYTHING, actions: ['sned'] }] }, 'rule 0: actions: "sned" is unknown; allowed are send,'],
    [{ rules: [{ ...ANYTHING, patterns: 'topics' }] }, 'rule 0: patterns: "topics" is unknown; allowed are queues,'],
    [{ rules: [{ ...ANYTHING, clients: [] }] }, 'rule 0: clients has 0 entries'],
    [{ rules: [{ ...ANYTHING, clients: undefined }] }, 'rule 0: clients: missing'],
    [{ rules: [{ ...ANYTHING, channels: [''] }] }, 'rule 0: channels: ""; allowed is a text'],
    [{ rules: [{ ...ANYTHING, channels: [3, null] }] }, 'rule 0: channels: 3;'],
    [{ rules: [{ ...ANYTHING, channels: 'x'.repeat(513) }] }, 'allowed is a text of 1 to 512 characters'],
    [{ rules: Array.from({ length: 10_001 }, () => ANYTHING) }, 'at most 10000 are allowed'],
  ])('S4 - %j is refused: %s', (input, problem) => {
    expect(problemsOf(input).join('\n')).toContain(problem)
  })

  test('S4 - policy: an error lists every problem, not only the first', () => {
    const bad = { rules: [{ ...ANYTHING, actions: 'x', patterns: 'y', z: 1 }, 'no rule'] }
    expect(problemsOf(bad)).toHaveLength(4)
  })

  test('S4 - JSON that is no policy is refused as such', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (input) => {
        expect(problemsOf(input)).not.toEqual([])
        expect(problemsOf({ rules: [input] })).not.toEqual([])
      }),
      { seed: 4, numRuns: 500 },
    )
  })
})

describe('S4 - decisions', () => {
  test('S4 - the first matching rule decides; without a match the action is denied', () => {
    const authorization = new Authorization(
      policy(
        { channels: 'orders.secret', effect: 'deny' },
        { clients: 'ali*', actions: 'send', patterns: 'queues', channels: 'orders.*' },
        { clients: 'alice', effect: 'deny' },
        { channels: 'open' },
      ),
    )
    const explain = (channel: string, clientId = 'alice') =>
      authorization.explain({ clientId }, 'send', 'queues', channel)
    expect(explain('orders.new')).toEqual({ allowed: true, rule: 1 })
    expect(explain('orders.new.much')).toEqual({ allowed: true, rule: 1 })
    expect(explain('orders.secret')).toEqual({ allowed: false, rule: 0 })
    expect(explain('open')).toEqual({ allowed: false, rule: 2 })
    expect(explain('open', 'bob')).toEqual({ allowed: true, rule: 3 })
    expect(explain('other', 'bob')).toEqual({ allowed: false, rule: undefined })
    expect(authorization.explain(alice, 'send', 'events', 'orders.new')).toEqual({ allowed: false, rule: 2 })
  })

  test('S4 - an empty policy denies everything', () => {
    const authorization = new Authorization(policy())
    for (const action of POLICY_ACTIONS) {
      for (const pattern of RESOURCE_TYPES) {
        expect(authorization.permits(alice, action, pattern, 'x')).toBe(false)
        expect(authorization.mayPermit(alice, action, pattern)).toBe(false)
      }
    }
  })

  test('S4 - a subscription with wildcards must be allowed on all that it can see', () => {
    expect(subscribed('orders.*', { channels: 'orders.*' })).toBe(true)
    expect(subscribed('orders.>', { channels: 'orders.*' })).toBe(true)
    expect(subscribed('>', { channels: 'orders.*' })).toBe(false)
    expect(subscribed('*.new', { channels: 'orders.new' })).toBe(false)
    expect(subscribed('>', {})).toBe(true)
    expect(subscribed('>', { channels: 'secret', effect: 'deny' }, {})).toBe(false)
    expect(subscribed('orders.>', { channels: 'secret.*', effect: 'deny' }, {})).toBe(true)
    expect(subscribed('orders.>', {}, { channels: 'orders.secret', effect: 'deny' })).toBe(true)
    // A star within a token is no wildcard of a subscription.
    expect(subscribed('a*', { channels: 'a?' })).toBe(true)
  })

  test('S4 - policy: a new policy applies at once, also to cached decisions', () => {
    const authorization = new Authorization(policy({}))
    const seen: string[] = []
    const off = authorization.watch({
      allowed: () => authorization.permits(alice, 'subscribe', 'events', 'x'),
      revoke: () => void seen.push('revoked'),
    })
    expect(authorization.permits(alice, 'send', 'queues', 'x')).toBe(true)
    authorization.replace(policy({ channels: 'y' }))
    expect(authorization.permits(alice, 'send', 'queues', 'x')).toBe(false)
    expect(seen).toEqual(['revoked'])
    off()
    authorization.replace(policy())
    expect(seen).toEqual(['revoked'])
  })

  test('S4 - a new policy ends 200 subscriptions without holding the event loop, new calls obey it meanwhile', async () => {
    const rules = Array.from({ length: 2_000 }, (_, i) => ({ clients: `client-${i}-*`, channels: 'open' }))
    const large = policy(...rules)
    const authorization = new Authorization(policy({}))
    const ended: string[] = []
    const watch = (clientId: string, channel: string): (() => void) =>
      authorization.watch({
        allowed: () => authorization.permits({ clientId }, 'subscribe', 'events', channel),
        revoke: () => void ended.push(clientId),
      })
    const clients = Array.from({ length: 200 }, (_, i) => `client-${i}-a`)
    for (const client of clients) watch(client, 'secret')
    watch('client-0-a', 'open')
    const closed = watch('client-1-closed', 'secret')
    authorization.replace(large)
    expect(ended.length).toBeLessThan(clients.length)
    expect(authorization.permits(alice, 'subscribe', 'events', 'secret')).toBe(false)
    closed()
    // A policy that takes its place meanwhile is the one that counts.
    authorization.replace(policy(...rules.slice(1)))
    await expect.poll(() => ended.toSorted()).toEqual([...clients, 'client-0-a'].toSorted())
  })

  test('S4 - policy: the cache of decisions is bounded, and its eviction changes no decision', () => {
    const authorization = new Authorization(policy({ channels: '*7' }))
    for (let i = 0; i < 120_000; i++) {
      expect(authorization.permits({ clientId: `c${i % 12_000}` }, 'send', 'queues', String(i))).toBe(i % 10 === 7)
    }
  })
})

describe('S4 - any policy', () => {
  const name = fc.stringMatching(/^[ab](?:\.?[ab]){0,3}$/)
  const glob = fc.stringMatching(/^[ab.*?]{1,5}$/)
  const rule = fc.record({
    clients: fc.constantFrom('*', 'alice', 'bob', 'a*'),
    actions: fc.constant('*'),
    patterns: fc.constant('*'),
    channels: fc.array(glob, { minLength: 1, maxLength: 2 }),
    effect: fc.constantFrom('allow', 'deny'),
  })
  const rules = fc.array(rule, { maxLength: 5 })
  test('S4 - the first matching rule decides', () => {
    fc.assert(
      fc.property(rules, name, (list, channel) => {
        const first = list.find(
          ({ clients, channels }) => naive(clients).test('alice') && channels.some((one) => naive(one).test(channel)),
        )
        const authorization = new Authorization(parsePolicy({ rules: list }))
        for (let again = 0; again < 2; again++) {
          expect(authorization.permits(alice, 'send', 'queues', channel)).toBe(first?.effect === 'allow')
        }
      }),
      { seed: 11, numRuns: 1500 },
    )
  })

  test('S4 - a subscription that is allowed sees no channel that is denied', () => {
    const pattern = fc.stringMatching(/^(?:[ab]|\*)(?:\.(?:[ab]|\*)){0,2}(?:\.>)?$/)
    let allowed = 0
    fc.assert(
      fc.property(rules, pattern, fc.array(name, { minLength: 5, maxLength: 20 }), (list, wanted, channels) => {
        const authorization = new Authorization(parsePolicy({ rules: list }))
        if (!authorization.permitsAll(alice, 'subscribe', 'events', wanted)) return
        allowed++
        for (const channel of channels.filter(channelMatcher(wanted))) {
          expect(authorization.permits(alice, 'subscribe', 'events', channel), channel).toBe(true)
        }
      }),
      { seed: 12, numRuns: 1500 },
    )
    expect(allowed).toBeGreaterThan(50)
  })

  test('S4 - without an allow rule every action is denied', () => {
    let nothing = 0
    fc.assert(
      fc.property(rules, fc.array(name, { minLength: 5, maxLength: 20 }), (list, channels) => {
        const authorization = new Authorization(parsePolicy({ rules: list }))
        if (authorization.mayPermit(alice, 'send', 'queues')) return
        nothing++
        for (const channel of channels) {
          expect(authorization.permits(alice, 'send', 'queues', channel), channel).toBe(false)
        }
      }),
      { seed: 13, numRuns: 1500 },
    )
    expect(nothing).toBeGreaterThan(50)
  })
})

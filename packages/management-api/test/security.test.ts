import { parsePolicy, parseRoutingTable, Routing } from '@signalbox/broker-core'
import { expect, test } from 'vitest'

import { bearer, manage, tokens } from './management-server.ts'

const POLICY = parsePolicy({
  rules: [
    { clients: 'shop-*', actions: ['send', 'receive'], patterns: 'queues', channels: 'orders.?', effect: 'allow' },
    { clients: '*', actions: '*', patterns: '*', channels: 'secret', effect: 'deny' },
    { clients: 'watch', actions: 'subscribe', patterns: 'events', channels: 'news.*', effect: 'allow' },
  ],
})

test('MGMT-17 - reports the policy rule that decides', async () => {
  const { get } = await manage({ policy: POLICY })
  const decide = async (query: string) => (await get(`/api/policy/test?${query}`)).data
  expect(await decide('client=shop-1&action=send&pattern=queues&channel=orders.1')).toEqual({
    allowed: true,
    decided_by: 'rule',
    reason: 'rule 0 allows it; the first rule is 0',
    rule: {
      index: 0,
      clients: ['shop-*'],
      actions: ['send', 'receive'],
      patterns: ['queues'],
      channels: ['orders.?'],
      effect: 'allow',
    },
  })
  expect(await decide('client=shop-1&action=send&pattern=queues&channel=secret')).toMatchObject({
    allowed: false,
    decided_by: 'rule',
    rule: { index: 1, effect: 'deny' },
  })
  expect(await decide('client=other&action=peek&pattern=queues&channel=orders.1')).toEqual({
    allowed: false,
    decided_by: 'no_rule',
    reason: 'no rule of 3 allows it, and calls that no rule allows are denied',
    rule: null,
  })
  expect(await decide('client=watch&action=subscribe&pattern=events&channel=news.>')).toMatchObject({
    allowed: true,
    rule: { index: 2 },
  })
  expect(await decide('client=a&action=call&pattern=agents&channel=secret')).toMatchObject({ rule: { index: 1 } })
  expect(await decide('client=a&action=send&pattern=queues&channel=_AGENTS_.x')).toMatchObject({
    allowed: false,
    decided_by: 'reserved',
  })
})

test('MGMT-17 - a policy that was replaced decides at once', async () => {
  const { get, authorization } = await manage({ policy: POLICY })
  const query = '/api/policy/test?client=shop-1&action=send&pattern=queues&channel=orders.1'
  expect((await get<{ readonly allowed: boolean }>(query)).data.allowed).toBe(true)
  authorization?.replace(parsePolicy({ rules: [] }))
  expect((await get<{ readonly allowed: boolean }>(query)).data.allowed).toBe(false)
})

test('MGMT-17 - without a policy every call is allowed', async () => {
  const { get } = await manage()
  const { data } = await get('/api/policy/test?client=a&action=send&pattern=queues&channel=x')
  expect(data).toMatchObject({ allowed: true, decided_by: 'no_policy', rule: null })
})

test('MGMT-17 - every invalid parameter is named', async () => {
  const { get } = await manage()
  const missing = await get('/api/policy/test?client=a&action=fly')
  expect(missing.data.code).toBe('PARAMETER_INVALID')
  expect(missing.data.problems.map(({ parameter }) => parameter)).toEqual(['action', 'pattern', 'channel'])
  const name = await get('/api/policy/test?client=a&action=send&pattern=queues&channel=a.*')
  expect(name.error_string).toMatch(/channel/)
  const pattern = await get('/api/policy/test?client=a&action=subscribe&pattern=events&channel=a.>.b')
  expect(pattern.data.code).toBe('PARAMETER_INVALID')
})

test('MGMT-17 - reports the authentication and the policy in force', async () => {
  const policy = { file: 'policy.yaml', since: 1_000, failure: { at: 2_000, reason: 'rule 0 has no effect' } }
  const { get } = await manage({
    policy: POLICY,
    security: () => ({
      authentication: {
        shared: true,
        management: false,
        keySource: 'authentication.jwksUrl',
        algorithms: ['ES256'],
        issuer: 'https://id.example',
        audience: [],
        oauth: false,
        since: 3_000,
      },
      policy,
      tls: { shared: { enabled: true, mutual: true }, management: { enabled: false, mutual: false } },
    }),
  })
  expect((await get('/api/security')).data).toEqual({
    shared: { authentication: true, tls: true, mutual_tls: true },
    management: { authentication: false, tls: false, mutual_tls: false },
    keys: {
      source: 'authentication.jwksUrl',
      algorithms: ['ES256'],
      issuer: 'https://id.example',
      audience: [],
      oauth: false,
      since: '1970-01-01T00:00:03.000Z',
      failure: null,
    },
    policy: {
      file: 'policy.yaml',
      rules: 3,
      since: '1970-01-01T00:00:01.000Z',
      failure: { time: '1970-01-01T00:00:02.000Z', reason: 'rule 0 has no effect' },
    },
  })
})

test('MGMT-17 - a host that reports nothing has the authentication of its listener', async () => {
  const { get } = await manage({ authenticator: tokens() })
  const { data } = await get('/api/security', bearer('a:ReadOnly'))
  expect(data).toMatchObject({ management: { authentication: true }, keys: null, policy: null })
})

test('MGMT-17 - lists every setting with its value, origin and documentation', async () => {
  const setting = {
    key: 'http.port',
    env: 'HTTP_PORT',
    group: 'HTTP',
    value: 9091,
    default: 9090,
    origin: 'environment',
    origin_detail: 'environment HTTP_PORT',
    description: 'Port.',
    allowed: '0 to 65535',
    documentation: 'https://example.com/#http_port',
  } as const
  const list = { ...setting, key: 'audience', value: ['a'], default: [] }
  const { get } = await manage({ settings: () => [setting, list] })
  expect((await get('/api/settings')).data).toEqual({ items: [setting, list] })
})

test('operator - a role includes the roles below it', async () => {
  const { get } = await manage({ authenticator: tokens() })
  expect((await get('/api/operator', bearer('eve:ReadWrite'))).data).toEqual({
    client: 'eve',
    roles: ['ReadOnly', 'ReadWrite'],
  })
  expect((await get('/api/operator', bearer('eve'))).status).toBe(403)
})

test('operator - without authentication every caller is Admin', async () => {
  const { get } = await manage()
  expect((await get('/api/operator')).data).toMatchObject({ roles: ['ReadOnly', 'ReadWrite', 'Admin'] })
})

test('routing - lists the rules in force with their targets', async () => {
  const routing = new Routing()
  const { get } = await manage({ services: { routing } })
  expect((await get('/api/routing')).data).toEqual({ rules: [] })
  routing.replace(
    parseRoutingTable([
      { key: 'orders\\..+', routes: 'events_store:archive;queues:work.{ce_shop}' },
      { key: "type = 'paid'", keyType: 'cesql', routes: 'events:paid' },
    ]),
  )
  expect((await get<{ readonly rules: unknown }>('/api/routing')).data.rules).toEqual([
    {
      index: 0,
      key: 'orders\\..+',
      key_type: 'regex',
      targets: [
        { type: 'events_store', channel: 'archive' },
        { type: 'queues', channel: 'work.{ce_shop}' },
      ],
    },
    { index: 1, key: "type = 'paid'", key_type: 'cesql', targets: [{ type: 'events', channel: 'paid' }] },
  ])
})

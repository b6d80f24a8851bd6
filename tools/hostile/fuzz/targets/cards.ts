import { isIPv4 } from 'node:net'

import { AgentAddressPolicy, isAgentId, RegistryError } from '@signalbox/registry'
import * as fc from 'fast-check'

import { agentUrl } from '../../../../packages/registry/src/agent-addresses.ts'
import { MAX_CARD_BYTES, validateCard } from '../../../../packages/registry/src/card/validate-card.ts'
import { readEntry } from '../../../../packages/registry/src/discovery/discovery-entry.ts'
import { readListQuery } from '../../../../packages/registry/src/http/agent-list.ts'
import { JSON_UNITS } from '../grammar/json.ts'
import { cardText } from '../grammar/messages.ts'
import { almost, MAX_HEAD, phrase, textOf, word } from '../grammar/pieces.ts'
import { assertHolds, assertSame, Finding, parserTarget, resultOf } from '../target.ts'

const octet = fc.oneof(
  fc.nat(255).map(String),
  fc.constantFrom('0', '127', '169', '254', '0x7f', '0177', '256', '2130706433'),
)
const ipv4 = fc.array(octet, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('.'))
const ipv6 = fc
  .oneof(
    fc.ipV6(),
    fc
      .tuple(fc.constantFrom('::ffff:', '::', '64:ff9b::', '2002:', '::ffff:0:', 'fe80::'), ipv4)
      .map(([prefix, rest]) => prefix + rest),
  )
  .map((address) => `[${address}]`)
const hosts = fc.oneof(
  ipv4,
  ipv6,
  fc.constantFrom('localhost', 'agent.example.com', 'metadata.google.internal', 'LOCALHOST.', 'xn--a'),
  word,
)

const agentUrls = fc
  .tuple(
    fc.constantFrom('http://', 'https://', 'HTTP://', 'http:/', 'ftp://', ''),
    fc.constantFrom('', '', 'a@', 'a:b@'),
    hosts,
    fc.constantFrom('', ':80', ':0', ':65536', ':'),
    phrase,
  )
  .map(([scheme, user, host, port, path]) => `${scheme}${user}${host}${port}/${path}`)

/** Answers at once; the address is allowed for half of the names. */
const addresses = new AgentAddressPolicy({
  resolve: (name) =>
    Promise.resolve(
      name.length % 2 === 0 ? [{ address: '10.1.2.3', family: 4 }] : [{ address: '169.254.169.254', family: 4 }],
    ),
})

async function checkCard(text: string): Promise<void> {
  let given: unknown
  try {
    given = JSON.parse(text)
  } catch {
    return
  }
  try {
    const card = await validateCard(given, (url) => addresses.check(url))
    assertHolds('a card has an invalid id', isAgentId(card.agent_id))
    assertHolds('a card is too large', JSON.stringify(card).length <= MAX_CARD_BYTES + 64)
    assertHolds('a card keeps the fields that the server sets', !('registered_by' in card) && !('last_seen' in card))
    const url = agentUrl(card.url)
    assertHolds('the host of a card is always refused', url !== undefined && !refusesAtConnect(url))
  } catch (error) {
    if (!(error instanceof RegistryError)) throw error
    assertHolds(`a refusal has no details`, error.details.length > 0)
    assertHolds(`a refusal takes ${error.message.length} characters`, error.message.length < 65_536)
  }
}

function refusesAtConnect(url: Pick<URL, 'hostname' | 'port' | 'protocol'>): boolean {
  return !addresses.hostCheck(url)()
}

/** Returns the real target of a connection to such an address, by the operating system's rules. */
const FORBIDDEN = [/^169\.254\./, /^0\./, /^22[4-9]\./, /^255\.255\.255\.255$/]

export const cardTargets = [
  parserTarget({
    name: 'agent-card',
    about: 'agent cards: refused with reasons, or kept within limits',
    input: almost(cardText(agentUrls), ...JSON_UNITS),
    check: (pieces) => checkCard(textOf(pieces)),
  }),
  parserTarget({
    name: 'agent-url',
    about: 'URLs of agents: no spelling of a forbidden address passes',
    input: almost(agentUrls, '0', '.', ':', '%', 'a.', '@'),
    async check(pieces) {
      const url = agentUrl(textOf(pieces))
      if (url === undefined) return
      const refusal = await addresses.check(url)
      if (refusal !== undefined) return
      assertHolds('a host passes registration and is refused at each call', !refusesAtConnect(url))
      if (isIPv4(url.hostname) && FORBIDDEN.some((pattern) => pattern.test(url.hostname)))
        throw new Finding('wrong', `${url.hostname} passes`)
    },
  }),
  parserTarget({
    name: 'agent-list-query',
    about: 'the query of GET /agents',
    input: almost(
      fc.tuple(phrase, word).map(([tags, limit]) => `skill_tags=${tags}&limit=${limit}`),
      ',',
      '&',
      '%20',
      '9',
    ),
    check: (pieces) => void resultOf(() => readListQuery(textOf(pieces, MAX_HEAD)), RegistryError),
  }),
  parserTarget({
    name: 'discovery-entry',
    about: 'entries of the discovery log that another version wrote',
    input: fc.record({
      pieces: almost(cardText(agentUrls), ...JSON_UNITS),
      key: word,
      tags: fc.dictionary(fc.constantFrom('revision', 'last_seen', 'since', 'other'), word),
    }),
    check({ pieces, key, tags }) {
      const event = { id: '1', clientId: 'c', channel: 'c', metadata: '', timestamp: 1, sequence: 1 }
      const body = Buffer.from(textOf(pieces))
      const entry = resultOf(() => readEntry({ ...event, key, tags, body }), TypeError)
      if (entry?.record !== undefined) assertSame('agent_id', entry.record.card.agent_id, key)
    },
  }),
]

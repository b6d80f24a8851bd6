import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { Identity } from '@signalbox/http-kit'
import {
  AuthenticationError,
  bearerAuthenticator,
  originPolicy,
  parseTrustedOrigins,
  TrustedProxies,
} from '@signalbox/http-kit'
import { WebPolicy } from '@signalbox/http-kit/internal'
import * as fc from 'fast-check'

import { fromFlags } from '../../../../apps/server/src/config/flags.ts'
import { loadConfig } from '../../../../apps/server/src/config/load.ts'
import { SETTINGS } from '../../../../apps/server/src/config/settings.ts'
import { ServerError } from '../../../../apps/server/src/errors.ts'
import { JSON_UNITS, jsonText } from '../grammar/json.ts'
import type { Pieces } from '../grammar/pieces.ts'
import { almost, MAX_HEAD, phrase, textOf, word } from '../grammar/pieces.ts'
import { assertHolds, parserTarget, resultOf } from '../target.ts'

/** The longest file, in UTF-16 units. */
const MAX_FILE = 8_192

const folder = mkdtempSync(join(tmpdir(), 'signalbox-fuzz-'))
const file = join(folder, 'signalbox.yaml')
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))

const value = fc.oneof(
  fc.constantFrom(
    'true',
    'false',
    '0',
    '1',
    '9090',
    '-1',
    '1e3',
    '0x10',
    'auto',
    '*',
    'a,b',
    'https://a.example',
    '10.0.0.0/8',
    '::1',
    'nats://a:1',
    'http://u:p@h:1',
    '~',
    'null',
    "'x'",
    '[a, b]',
    '{a: 1}',
    '&a 1',
    '*a',
    '!!js/function x',
    '2026-01-01',
    '0b1',
    '.inf',
  ),
  jsonText,
  word,
)

const setting = fc.constantFrom(...SETTINGS)

const yamlText = fc
  .array(fc.tuple(setting, value), { maxLength: 6 })
  .map((pairs) =>
    pairs
      .map(
        ([{ path }, text]) =>
          `${path.map((name, depth) => `${'  '.repeat(depth)}${name}:`).join('\n')} ${text.replaceAll('\n', ' ')}`,
      )
      .join('\n'),
  )

async function checkConfig(
  yaml: Pieces | undefined,
  env: Readonly<Record<string, string>>,
  args: readonly string[],
): Promise<void> {
  if (yaml !== undefined) writeFileSync(file, textOf(yaml, MAX_FILE))
  const flags = fromFlags(args)
  try {
    const { config } = await loadConfig({ flags: { ...flags, file: yaml === undefined ? undefined : file }, env })
    assertHolds('a configuration without a store', config.store.path !== '')
  } catch (error) {
    if (!(error instanceof ServerError)) throw error
    assertHolds('a configuration is refused without a reason', error.problems.length > 0)
    assertHolds(
      'a reason is on several lines',
      error.problems.every((problem) => !problem.includes('\n')),
    )
  }
}

const origin = fc
  .tuple(
    fc.constantFrom('http://', 'https://', 'HTTP://', 'null', 'file://', ''),
    fc.oneof(
      fc.ipV6(),
      fc.ipV6().map((ip) => `[${ip}]`),
      fc.constantFrom('localhost', '127.0.0.1', 'a.example'),
      word,
    ),
    fc.constantFrom('', ':80', ':65536', ':0', ':'),
    fc.constantFrom('', '/', '?'),
  )
  .map((parts) => parts.join(''))

const forwarded = fc
  .array(
    fc.oneof(
      fc.ipV4(),
      fc.ipV6(),
      fc.ipV6().map((ip) => `"[${ip}]:80"`),
      fc.ipV4().map((ip) => `for=${ip};proto=http`),
      fc.constantFrom('for=_hidden', 'unknown', '::ffff:10.0.0.1', '10.0.0.1:80', 'for="[::1"'),
      word,
    ),
    { maxLength: 5 },
  )
  .map((list) => list.join(', '))

export const settingTargets = [
  parserTarget({
    name: 'config-file',
    about: 'configuration files',
    // The server reads this file at its start, without a client that waits.
    maxMs: 2_000,
    input: almost(yamlText, ...JSON_UNITS, '- ', 'a: ', '&a ', '*a ', '  ', '\n'),
    check: (pieces) => checkConfig(pieces, {}, []),
  }),
  parserTarget({
    name: 'config-environment',
    about: 'environment variables and flags',
    input: fc.record({
      env: fc.array(
        fc.tuple(
          fc.oneof(
            setting.map(({ env }) => env),
            word,
            fc.constantFrom('STORE_PAHT', 'NATS_PORT', 'STORE_SERVICE_HOST'),
          ),
          value,
        ),
        { maxLength: 5 },
      ),
      args: fc.array(
        fc.oneof(
          fc.tuple(setting, value).map(([{ flag }, text]) => `--${flag}=${text}`),
          word,
          fc.constantFrom('--config', '-c', '--', '-h', '--no-log-level', '--help=1'),
        ),
        { maxLength: 4 },
      ),
      long: almost(word, 'a', 'https://a.example,', '10.0.0.0/8,', '_', 'a-', 'a.', '9'),
    }),
    check: ({ env, args, long }) =>
      checkConfig(
        undefined,
        {
          ...Object.fromEntries(env),
          CORS_ALLOW_ORIGINS: textOf(long, MAX_HEAD),
          CONNECTORSA2_A_AGENT_URL_DENY: textOf(long, MAX_HEAD),
        },
        args,
      ),
  }),
  parserTarget({
    name: 'origin',
    about: 'Origin and Host headers, and lists of trusted origins',
    input: fc.record({
      origin: almost(origin, '0', ':', 'a', '.', '0:'),
      list: almost(origin, 'http://a,', ':', 'a.'),
    }),
    check({ origin, list }) {
      const [header, setting] = [textOf(origin, MAX_HEAD), textOf(list, MAX_HEAD)]
      originPolicy('auto', { bindHost: '127.0.0.1' })(header)
      const trusted = resultOf(() => parseTrustedOrigins(setting), RangeError)
      if (trusted !== undefined) resultOf(() => originPolicy(trusted)(header), RangeError)
      for (const ownOriginOnly of [false, true]) {
        const policy = new WebPolicy({ trustedOrigins: 'auto', ownOriginOnly, allowedHosts: ['auto'], anonymous: true })
        const refusal = policy.refusal({ headers: { host: header, origin: header }, socket: { once() {} } })
        if (/^https?:\/\/[a-z0-9-]+\.example$/.test(header))
          assertHolds('a strange origin passes', refusal !== undefined)
      }
    },
  }),
  parserTarget({
    name: 'proxies',
    about: 'TRUSTED_PROXIES, Forwarded and X-Forwarded-For',
    input: fc.record({
      list: fc.array(
        fc.oneof(
          fc.constantFrom('127.0.0.0/8', '::1', '10.0.0.0/8', '::/0'),
          fc.tuple(fc.ipV4(), fc.nat(40)).map(([ip, bits]) => `${ip}/${bits}`),
          word,
        ),
        { maxLength: 3 },
      ),
      header: almost(forwarded, ',', '1.2.3.4,', 'for=1.2.3.4;', ':', '"'),
    }),
    check({ list, header }) {
      const proxies = resultOf(() => new TrustedProxies(list), RangeError)
      proxies?.includes(textOf(header, MAX_HEAD))
    },
  }),
  parserTarget({
    name: 'authorization-header',
    about: 'Authorization headers and the tokens in them',
    input: almost(
      fc
        .tuple(
          fc.constantFrom('Bearer ', 'bearer  ', 'Basic ', ''),
          fc.oneof(
            fc.base64String(),
            fc.constantFrom('a.b.c', 'eyJhbGciOiJub25lIn0.e30.', 'eyJhbGciOiJIUzI1NiIsImNyaXQiOlsiYSJdfQ.e30.AA'),
            phrase,
          ),
        )
        .map((parts) => parts.join('')),
      ' ',
      'a',
      '.',
      'Bearer ',
    ),
    check: async (pieces) => {
      try {
        await verifyToken(textOf(pieces, MAX_HEAD))
      } catch (error) {
        if (!(error instanceof AuthenticationError)) throw error
      }
    },
  }),
]

const authenticator = bearerAuthenticator({ keys: { secret: 'a secret of more than thirty-two bytes' } })

/** Verifies an Authorization header as a server with a shared secret does. @throws AuthenticationError */
async function verifyToken(authorization: string): Promise<Identity> {
  return authenticator.authenticate({ headers: { authorization }, rawHeaders: ['Authorization', authorization] })
}

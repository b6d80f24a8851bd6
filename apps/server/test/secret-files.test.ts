import { chmodSync } from 'node:fs'

import { SignJWT } from 'jose'
import { replaceFile, testFile } from '@signalbox/testkit/test-folder'
import { expect, test } from 'vitest'

import { configText } from '../src/config/document.ts'
import { fromFlags } from '../src/config/flags.ts'
import { createConfig, loadConfig } from '../src/config/load.ts'
import { FILE_FORMS, openSecretFiles } from '../src/config/secret-files.ts'
import { SETTINGS } from '../src/config/settings.ts'
import { rpc } from './support/mcp.ts'
import { serve } from './support/server.ts'

const SECRET = 'a secret of thirty-two bytes: 12'

const load = (env: Record<string, string>) => loadConfig({ flags: fromFlags([]), env })

async function bearer(secret: string): Promise<Record<string, string>> {
  const token = await new SignJWT({ ClientID: 'alice', exp: Math.floor(Date.now() / 1000) + 60 })
    .setProtectedHeader({ alg: 'HS256' })
    .sign(Buffer.from(secret))
  return { authorization: `Bearer ${token}` }
}

test('secrets - every secret setting can be given as a file', () => {
  const forms = FILE_FORMS.map(({ setting }) => setting.key)
  const secrets = SETTINGS.filter(({ schema }) => schema.secret === true).map(({ key }) => key)
  expect(forms).toEqual(expect.arrayContaining(secrets))
  expect(FILE_FORMS.map(({ file: { env } }) => env)).toEqual([
    'AUTHENTICATION_SECRET_FILE',
    'NATS_SERVERS_FILE',
    'CONNECTORSA2_A_AGENT_PROXY_URL_FILE',
  ])
})

test('secrets - the value of a file is the value of the setting, without its last newline', async () => {
  const { config, origins } = await load({
    CONNECTORSA2_A_AGENT_PROXY_URL_FILE: testFile('http://user:password@proxy.example:3128\n'),
    NATS_SERVERS_FILE: testFile('tls://signalbox:password@one:4222\ntls://signalbox:password@two:4222\n'),
  })
  expect(config.connectors.a2a.agentProxyUrl).toBe('http://user:password@proxy.example:3128')
  expect(config.nats.servers).toEqual(['tls://signalbox:password@one:4222', 'tls://signalbox:password@two:4222'])
  expect(origins.get('nats.servers')).toMatch(/^file \//)
  const program = createConfig({ nats: { serversFile: testFile('nats://one:4222') } })
  expect(program.nats.servers).toEqual(['nats://one:4222'])
})

test('secrets - a value and a file for the same setting exclude each other', async () => {
  await expect(
    load({
      AUTHENTICATION_SECRET: SECRET,
      AUTHENTICATION_SECRET_FILE: testFile(SECRET),
      NATS_SERVERS_FILE: '/x',
      NATS_SERVERS: 'a',
    }),
  ).rejects.toMatchObject({
    problems: [
      'authentication.secretFile: authentication.secret is set too; allowed: one of AUTHENTICATION_SECRET and AUTHENTICATION_SECRET_FILE',
      'nats.serversFile: nats.servers is set too; allowed: one of NATS_SERVERS and NATS_SERVERS_FILE',
    ],
  })
})

test.each([
  [undefined, /^connectors\.a2a\.agentProxyUrlFile: cannot read "\/nowhere\/secret" \(ENOENT\)$/],
  ['\n', /^connectors\.a2a\.agentProxyUrlFile: ".*": it is empty/],
  ['hunter2', /^connectors\.a2a\.agentProxyUrl: \[hidden\] \(file .*\) is not allowed/],
])('secrets - a file with the text %j stops the start, and its content is not shown', async (text, problem) => {
  const path = text === undefined ? '/nowhere/secret' : testFile(text)
  const failed = await load({ CONNECTORSA2_A_AGENT_PROXY_URL_FILE: path }).catch((error: unknown) => error)
  expect(failed).toMatchObject({ problems: [expect.stringMatching(problem)] })
  expect(JSON.stringify(failed)).not.toContain('hunter2')
})

test('secrets - the printed configuration names the file and can be used again', async () => {
  const path = testFile('tls://signalbox:hunter2@one:4222')
  const text = await configText(await load({ NATS_SERVERS_FILE: path }))
  expect(text).not.toContain('hunter2')
  expect(text).toContain(`serversFile: ${path} # environment NATS_SERVERS_FILE`)
  const again = await loadConfig({ flags: fromFlags([`--config=${testFile(text)}`]), env: {} })
  expect(again.config.nats.servers).toEqual(['tls://signalbox:hunter2@one:4222'])
})

test('secrets - tokens are verified with the secret of a file, and with its next one after a change', async () => {
  const secretFile = testFile(`${SECRET}\n`)
  const { http } = await serve({ authentication: { enable: true, secretFile } })
  const ping = async (secret: string) => rpc(http.url, 'ping', {}, await bearer(secret))
  expect(await ping(SECRET)).toMatchObject({ result: {} })
  expect(await ping(`${SECRET}!`)).toMatchObject({ error: { code: -32010 } })
  replaceFile(secretFile, `${SECRET}!\n`)
  await expect.poll(() => ping(`${SECRET}!`), { timeout: 10_000 }).toMatchObject({ result: {} })
  expect(await ping(SECRET)).toMatchObject({ error: { code: -32010 } })
})

test.skipIf(process.platform === 'win32')('secrets - files that every user can read are found', () => {
  const [open, group] = [testFile('nats://one:4222'), testFile(SECRET)]
  chmodSync(open, 0o644)
  chmodSync(group, 0o640)
  const config = createConfig({ nats: { serversFile: open }, authentication: { secretFile: group } })
  expect(openSecretFiles(config)).toEqual([{ env: 'NATS_SERVERS_FILE', file: open }])
})

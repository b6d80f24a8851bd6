import type { KeyObject } from 'node:crypto'
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

import { isRole, ROLES } from '@signalbox/http-kit'
import { calculateJwkThumbprint, exportJWK, SignJWT } from 'jose'

import type { CommandCall } from './command.ts'
import { CommandError } from './errors.ts'

const PRIVATE_FILE = 'private.pem'
const PUBLIC_FILE = 'public.pem'

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 }

/**
 * `signalbox token`: creates a token for development, and a key pair if the folder has none. Writes
 * only the token to stdout, for scripts, and the instructions to stderr. In production, use an
 * identity provider.
 * @throws CommandError CONFIG_INVALID, START_FAILED
 */
export async function tokenCommand({ line, io }: CommandCall): Promise<void> {
  const folder = resolve(line.option('folder'))
  if (line.has('jwks')) {
    await io.stdout.write(`${JSON.stringify(await publicKeySet(openKey(folder)))}\n`)
    return
  }
  const clientId = line.value('client-id')
  const ttl = line.option('ttl')
  const roles = line
    .option('roles')
    .split(/[ ,]+/)
    .filter((role) => role !== '')
  const seconds = secondsOf(ttl)
  const problems = [
    ...clientIdProblems(clientId),
    ...roles
      .filter((role) => !isRole(role))
      .map((role) => `--roles: ${JSON.stringify(role)} is unknown; allowed are ${ROLES.join(', ')}`),
  ]
  if (seconds === undefined)
    problems.push(`--ttl: ${JSON.stringify(ttl)}; allowed is a time such as 90s, 30m, 12h or 7d`)
  if (problems.length > 0 || seconds === undefined) {
    throw new CommandError(
      'CONFIG_INVALID',
      problems.map((problem) => `token: ${problem}`),
    )
  }
  const key = openKey(folder)
  const token = await new SignJWT({ ClientID: clientId, roles: roles.length > 0 ? roles : undefined })
    .setProtectedHeader({ alg: 'ES256' })
    .setIssuedAt()
    .setExpirationTime(Math.floor(Date.now() / 1000) + seconds)
    .sign(key)
  const keyFile = join(folder, PUBLIC_FILE)
  if (line.has('json')) {
    await io.stdout.write(`${JSON.stringify({ token, client_id: clientId, roles, key_file: keyFile })}\n`)
    return
  }
  await io.stdout.write(`${token}\n`)
  await io.stderr.write(
    [
      '',
      `A token for ${clientId}${roles.length > 0 ? ` (${roles.join(', ')})` : ''}, valid for ${ttl}. For development only: every user who can read`,
      `${folder} can create tokens.`,
      '',
      'Start the server with authentication:',
      `  AUTHENTICATION_ENABLE=true AUTHENTICATION_KEY_FILE=${keyFile} ${commandInUse(io.env)}`,
      'and send the token with each request:',
      '  Authorization: Bearer TOKEN',
      '',
      '',
    ].join('\n'),
  )
}

/** Returns the command that starts the server in the way in which this one was started. */
export function commandInUse(env: CommandCall['io']['env']): string {
  if (env['npm_lifecycle_event'] === 'start') return 'npm start'
  return env['npm_command'] === 'exec' ? 'npx signalbox' : 'signalbox'
}

function clientIdProblems(clientId: string | undefined): string[] {
  if (clientId === undefined) return ['--client-id is missing; write --client-id=NAME with the name of the caller']
  return /^[\x21-\x7e]{1,256}$/.test(clientId) ? [] : ['--client-id: allowed are 1 to 256 visible ASCII characters']
}

/** Returns the public key as a key set, for `AUTHENTICATION_JWKS_FILE` or a web server. */
async function publicKeySet(key: KeyObject): Promise<object> {
  const jwk = await exportJWK(createPublicKey(key))
  const kid = await calculateJwkThumbprint(jwk)
  return { keys: [{ ...jwk, kid, alg: 'ES256', use: 'sig' }] }
}

function secondsOf(text: string): number | undefined {
  const [, amount, unit = ''] = /^([1-9][0-9]{0,8})([smhd])$/.exec(text) ?? []
  const perUnit = UNIT_SECONDS[unit]
  return amount === undefined || perUnit === undefined ? undefined : Number(amount) * perUnit
}

/** Returns the private key of the folder. Creates the key pair if there is none. */
function openKey(folder: string): KeyObject {
  const privateFile = join(folder, PRIVATE_FILE)
  const publicFile = join(folder, PUBLIC_FILE)
  try {
    if (!existsSync(privateFile)) {
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      // Readable only by the owner. Fails if the file was created in the meantime.
      writeFileSync(privateFile, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600, flag: 'wx' })
    }
    const key = createPrivateKey(readFileSync(privateFile))
    if (!existsSync(publicFile)) {
      writeFileSync(publicFile, createPublicKey(key).export({ type: 'spki', format: 'pem' }))
    }
    return key
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unusable'
    throw new CommandError(
      'START_FAILED',
      [`token: --folder: no key pair can be created or read in ${folder} (${reason})`],
      {
        cause: error,
      },
    )
  }
}

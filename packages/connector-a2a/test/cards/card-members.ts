import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { testFolder } from '@signalbox/testkit/test-folder'

/**
 * The members of A2A 1.0 (a2a.proto), as its JSON has them. Python's parser refuses others when it is
 * strict, and so do validators.
 */
const MEMBERS = {
  card: 'name description supportedInterfaces provider version documentationUrl capabilities securitySchemes securityRequirements defaultInputModes defaultOutputModes skills signatures iconUrl',
  interface: 'url protocolBinding tenant protocolVersion',
  provider: 'url organization',
  capabilities: 'streaming pushNotifications extensions extendedAgentCard',
  extension: 'uri description required params',
  skill: 'id name description tags examples inputModes outputModes securityRequirements',
  requirement: 'schemes',
  scheme:
    'apiKeySecurityScheme httpAuthSecurityScheme oauth2SecurityScheme openIdConnectSecurityScheme mtlsSecurityScheme',
  httpAuth: 'description scheme bearerFormat',
  signature: 'protected signature header',
} as const

/** The members that the specification requires; Go's parser and validators refuse a card without them. */
const REQUIRED: Partial<Record<keyof typeof MEMBERS, string>> = {
  card: 'name description supportedInterfaces version capabilities defaultInputModes defaultOutputModes skills',
  interface: 'url protocolBinding protocolVersion',
  provider: 'url organization',
  skill: 'id name description tags',
  signature: 'protected signature',
}

type Members = Record<string, unknown>

/** Returns what a strict parser of A2A 1.0 says about a card: unknown, missing and empty members. */
export function strictProblems(card: unknown): readonly string[] {
  const problems: string[] = []
  const check = (kind: keyof typeof MEMBERS, value: unknown, path: string): Members => {
    const members = Object(value) as Members
    const allowed = MEMBERS[kind].split(' ')
    for (const name of Object.keys(members)) if (!allowed.includes(name)) problems.push(`${path}.${name}: unknown`)
    for (const name of REQUIRED[kind]?.split(' ') ?? [])
      if (!(name in members)) problems.push(`${path}.${name}: missing`)
    return members
  }
  const each = (kind: keyof typeof MEMBERS, list: unknown, path: string): readonly Members[] =>
    list === undefined ? [] : (list as unknown[]).map((one, index) => check(kind, one, `${path}[${index}]`))
  const { supportedInterfaces, provider, capabilities, securitySchemes, securityRequirements, skills, signatures } =
    check('card', card, 'card')
  each('interface', supportedInterfaces, 'supportedInterfaces')
  if (provider !== undefined) check('provider', provider, 'provider')
  each('extension', check('capabilities', capabilities, 'capabilities')['extensions'], 'extensions')
  for (const [name, scheme] of Object.entries(Object(securitySchemes))) {
    const { httpAuthSecurityScheme } = check('scheme', scheme, name)
    check('httpAuth', httpAuthSecurityScheme, `${name}.httpAuthSecurityScheme`)
  }
  each('requirement', securityRequirements, 'securityRequirements')
  each('skill', skills, 'skills')
  each('signature', signatures, 'signatures')
  problems.push(...emptyMembers(card, 'card'))
  return problems
}

/** The paths of empty texts, lists and objects and of null, at every depth. */
function emptyMembers(value: unknown, path: string): readonly string[] {
  if (value === '' || value === null) return [`${path}: empty`]
  if (typeof value !== 'object' || value === undefined) return []
  const entries = Object.entries(value)
  if (entries.length === 0) return [`${path}: empty`]
  return entries.flatMap(([name, member]) => emptyMembers(member, `${path}.${name}`))
}

/** A private key, as a PEM file has it. */
export function newPem(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
}

/** A private key, as a JSON Web Key Set has it. */
export function newJwk(): object {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })
}

/** A file with these keys, which ends with the test. */
export function keyFile(...keys: readonly string[]): string {
  const file = join(testFolder(), 'card-keys.pem')
  writeFileSync(file, keys.join(''))
  return file
}

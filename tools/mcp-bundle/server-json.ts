import { createHash } from 'node:crypto'

import { Type } from 'typebox'
import { Errors } from 'typebox/value'

import type { Product } from './bundle.ts'
import { DESCRIPTION, SETTINGS } from './bundle.ts'

/** Returns the entry for the MCP registry: the package and the bundle, both of which run the bridge. */
export function serverJson({ name, version, mcpName, web }: Product, bundle: Buffer): object {
  const { url, token } = SETTINGS
  const environmentVariables = [
    { name: token.variable, description: token.description, isRequired: false, isSecret: true },
  ]
  return {
    $schema: SERVER_SCHEMA,
    name: mcpName,
    title: 'Signalbox',
    description: DESCRIPTION,
    version,
    websiteUrl: web,
    repository: { url: web, source: 'github', subfolder: 'apps/server' },
    packages: [
      {
        registryType: 'npm',
        identifier: name,
        version,
        runtimeHint: 'npx',
        transport: { type: 'stdio' },
        packageArguments: [
          { type: 'positional', value: 'mcp' },
          { type: 'named', name: '--url', description: url.description, default: url.default, isRequired: false },
        ],
        environmentVariables,
      },
      {
        registryType: 'mcpb',
        identifier: `${web}/releases/download/${encodeURIComponent(`${name}@${version}`)}/${bundleName(name, version)}`,
        fileSha256: createHash('sha256').update(bundle).digest('hex'),
        transport: { type: 'stdio' },
        environmentVariables: [
          { name: 'SIGNALBOX_URL', description: url.description, default: url.default, isRequired: false },
          ...environmentVariables,
        ],
      },
    ],
  }
}

export function bundleName(name: string, version: string): string {
  return `${name}-${version}.mcpb`
}

/**
 * The registry's schema of 2025-12-11. The rules below are written from it, for the members that an entry of this server
 * can have; they are not a copy. They are stricter: unknown members are refused, and so are a bundle without a hash and
 * a package of another registry.
 */
const SERVER_SCHEMA = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json'

const CLOSED = { additionalProperties: false }

const url = Type.String({ pattern: '^https?://[^\\s]+$' })
/** The check of the bundle compares it with the manifest, which has an exact version. */
const version = Type.String({ minLength: 1, maxLength: 255 })

const input = {
  description: Type.Optional(Type.String()),
  isRequired: Type.Optional(Type.Boolean()),
  isSecret: Type.Optional(Type.Boolean()),
  format: Type.Optional(Type.Enum(['string', 'number', 'boolean', 'filepath'])),
  default: Type.Optional(Type.String()),
  placeholder: Type.Optional(Type.String()),
  value: Type.Optional(Type.String()),
  choices: Type.Optional(Type.Array(Type.String())),
}

const keyValueInput = Type.Object({ name: Type.String(), ...input }, CLOSED)

const argument = Type.Union([
  Type.Object(
    { type: Type.Literal('positional'), ...input, value: Type.String(), isRepeated: Type.Optional(Type.Boolean()) },
    CLOSED,
  ),
  Type.Object(
    { type: Type.Literal('positional'), ...input, valueHint: Type.String(), isRepeated: Type.Optional(Type.Boolean()) },
    CLOSED,
  ),
  Type.Object(
    { type: Type.Literal('named'), name: Type.String(), ...input, isRepeated: Type.Optional(Type.Boolean()) },
    CLOSED,
  ),
])

const transport = Type.Union([
  Type.Object({ type: Type.Literal('stdio') }, CLOSED),
  Type.Object(
    { type: Type.Enum(['streamable-http', 'sse']), url, headers: Type.Optional(Type.Array(keyValueInput)) },
    CLOSED,
  ),
])

const common = {
  identifier: Type.String({ minLength: 1 }),
  transport,
  runtimeHint: Type.Optional(Type.String()),
  packageArguments: Type.Optional(Type.Array(argument)),
  environmentVariables: Type.Optional(Type.Array(keyValueInput)),
}

const npmPackage = Type.Object({ registryType: Type.Literal('npm'), version, ...common }, CLOSED)

/** A bundle has a URL as its identifier, and needs the hash. */
const bundlePackage = Type.Object(
  {
    registryType: Type.Literal('mcpb'),
    ...common,
    identifier: url,
    fileSha256: Type.String({ pattern: '^[a-f0-9]{64}$' }),
  },
  CLOSED,
)

const ServerJson = Type.Object(
  {
    $schema: Type.Literal(SERVER_SCHEMA),
    name: Type.String({ minLength: 3, maxLength: 200, pattern: '^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$' }),
    title: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
    description: Type.String({ minLength: 1, maxLength: 100 }),
    version,
    websiteUrl: Type.Optional(url),
    repository: Type.Optional(
      Type.Object(
        {
          url,
          source: Type.String(),
          id: Type.Optional(Type.String()),
          subfolder: Type.Optional(Type.String({ pattern: '^[^/.][^/]*(?:/[^/.][^/]*)*$' })),
        },
        CLOSED,
      ),
    ),
    packages: Type.Array(Type.Union([npmPackage, bundlePackage]), { minItems: 1 }),
  },
  CLOSED,
)

/** Returns the problems of an entry for the registry, each as one line; none for a valid entry. */
export function schemaProblems(entry: unknown): readonly string[] {
  const lines = Errors(ServerJson, entry).map(({ instancePath, message }) => `server.json: ${instancePath} ${message}`)
  return [...new Set(lines)]
}

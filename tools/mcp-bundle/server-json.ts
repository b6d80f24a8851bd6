import { createHash } from 'node:crypto'

import type { Product } from './product.ts'
import { DESCRIPTION, SETTINGS } from './product.ts'
import { SERVER_SCHEMA } from './server-schema.ts'

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

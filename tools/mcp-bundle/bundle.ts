import { readdirSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { basename, join } from 'node:path'

import type { Product } from './product.ts'
import { DESCRIPTION, ROOT, SETTINGS } from './product.ts'
import type { ArchivedFile } from './zip.ts'
import { zip } from './zip.ts'

/** The folder of the commands. The program is its file `tls.ts` and its folder `mcp-bridge`: the bundle has them in one folder. */
const SOURCE = join(ROOT, 'packages/cli/src')

/** The source file of the bundle's program. */
const ENTRY = 'bundle-entry.ts'

const ICON = 'icon.png'

/** The oldest Node that runs the bridge: that of the hosts, which bring their own. */
const NODE = '>=20.0.0'

/** Returns the MCP bundle: a zip archive with a manifest and the bridge, without dependencies. */
export function bundle(product: Product): Buffer {
  return zip([
    json('manifest.json', manifest(product)),
    json('server/package.json', { type: 'module' }),
    ...program(),
    // The icon of the console, packages/console/src/page/public/signalbox.svg, in the form that hosts show.
    { path: ICON, content: readFileSync(join(import.meta.dirname, ICON)) },
    { path: 'LICENSE', content: readFileSync(join(ROOT, 'LICENSE')) },
  ])
}

function program(): readonly ArchivedFile[] {
  return [...readdirSync(join(SOURCE, 'mcp-bridge')).map((file) => join('mcp-bridge', file)), 'tls.ts']
    .toSorted()
    .map((path) => {
      const file = basename(path)
      const source = stripTypeScriptTypes(readFileSync(join(SOURCE, path), 'utf8'))
      const code = source.replaceAll(/(from |import )'\.{1,2}\/([^'/]+)\.ts'/g, "$1'./$2.js'")
      return {
        path: `server/${file === ENTRY ? 'index.js' : file.replace(/\.ts$/, '.js')}`,
        content: Buffer.from(code),
      }
    })
}

/** The manifest of the bundle, in version 0.3 of its format. */
function manifest({ name, version, license, keywords, web }: Product): object {
  const { url, token } = SETTINGS
  return {
    manifest_version: '0.3',
    name,
    display_name: 'Signalbox',
    version,
    description: DESCRIPTION,
    icon: ICON,
    author: { name: 'Signalbox', url: web },
    repository: { type: 'git', url: web },
    homepage: web,
    documentation: `${web}/blob/main/docs/guides/mcp.md`,
    support: `${web}/issues`,
    license,
    keywords,
    server: {
      type: 'node',
      entry_point: 'server/index.js',
      mcp_config: {
        command: 'node',
        args: ['${__dirname}/server/index.js'],
        env: { SIGNALBOX_URL: '${user_config.url}', [token.variable]: '${user_config.token}' },
      },
    },
    // The server has the tools; its settings decide which.
    tools_generated: true,
    user_config: {
      url: { type: 'string', title: url.title, description: url.description, default: url.default, required: true },
      token: {
        type: 'string',
        title: token.title,
        description: token.description,
        default: '',
        sensitive: true,
        required: false,
      },
    },
    compatibility: { platforms: ['darwin', 'win32', 'linux'], runtimes: { node: NODE } },
  }
}

function json(path: string, value: object): ArchivedFile {
  return { path, content: Buffer.from(`${JSON.stringify(value, null, 2)}\n`) }
}

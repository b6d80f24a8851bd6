import { readdirSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { basename, join } from 'node:path'
import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib'

export const ROOT = join(import.meta.dirname, '../..')

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

/** The parts of the server's package.json that the bundle and the registry entry repeat. */
export interface Product {
  readonly name: string
  readonly version: string
  /** The name in the MCP registry, which compares it with the published package. */
  readonly mcpName: string
  readonly license: string
  readonly keywords: readonly string[]
  /** The page of the repository. */
  readonly web: string
}

export function readProduct(): Product {
  const manifest = JSON.parse(readFileSync(join(ROOT, 'apps/server/package.json'), 'utf8')) as Omit<Product, 'web'> & {
    readonly repository: { readonly url: string }
  }
  const { name, version, mcpName, license, keywords, repository } = manifest
  return { name, version, mcpName, license, keywords, web: repository.url.replace(/^git\+|\.git$/g, '') }
}

/** Has at most 100 characters, the limit of the registry. */
export const DESCRIPTION = 'Tools for a Signalbox message broker: queues, events, commands, queries and agents.'

/** The settings of the bridge, as the hosts ask their users for them. */
export const SETTINGS = {
  url: {
    title: 'Server URL',
    description: 'The MCP endpoint of the Signalbox server.',
    default: 'http://127.0.0.1:9090/mcp',
  },
  token: {
    title: 'Token',
    description: 'The bearer token of the server; empty if the server has no authentication.',
    variable: 'SIGNALBOX_TOKEN',
  },
} as const

/** A file in an archive. */
export interface ArchivedFile {
  /** With slashes, relative to the root of the archive. */
  readonly path: string
  readonly content: Buffer
}

const LOCAL = 0x04034b50
const CENTRAL = 0x02014b50
const END = 0x06054b50

const VERSION = 20
/** The names of files are UTF-8. */
const UTF8_NAMES = 0x0800
const DEFLATED = 8
/** The first day that the format can express. All files have it, so that equal files make equal archives. */
const FIRST_DAY = 0x0021
/** A file of Unix, readable for all, in the upper half of the attributes. */
const ATTRIBUTES = 0o100644 * 0x10000

/** Returns the files as a zip archive. Equal files make equal archives. */
export function zip(files: readonly ArchivedFile[]): Buffer {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const { path, content } of files) {
    const name = Buffer.from(path)
    const deflated = deflateRawSync(content, { level: 9 })
    const common = Buffer.alloc(26)
    common.writeUInt16LE(VERSION, 0)
    common.writeUInt16LE(UTF8_NAMES, 2)
    common.writeUInt16LE(DEFLATED, 4)
    common.writeUInt16LE(FIRST_DAY, 8)
    common.writeUInt32LE(crc32(content), 10)
    common.writeUInt32LE(deflated.length, 14)
    common.writeUInt32LE(content.length, 18)
    common.writeUInt16LE(name.length, 22)
    const local = Buffer.concat([uint32(LOCAL), common, name, deflated])
    const tail = Buffer.alloc(14)
    tail.writeUInt32LE(ATTRIBUTES, 6)
    tail.writeUInt32LE(offset, 10)
    // The version of the program that made the archive; its upper byte is Unix.
    const madeBy = Buffer.from([VERSION, 3])
    directory.push(Buffer.concat([uint32(CENTRAL), madeBy, common, tail, name]))
    parts.push(local)
    offset += local.length
  }
  const central = Buffer.concat(directory)
  const end = Buffer.alloc(18)
  end.writeUInt16LE(files.length, 4)
  end.writeUInt16LE(files.length, 6)
  end.writeUInt32LE(central.length, 8)
  end.writeUInt32LE(offset, 12)
  return Buffer.concat([...parts, central, uint32(END), end])
}

/**
 * Returns the files of an archive that {@link zip} made, in their order.
 * @throws Error for another or a damaged archive
 */
export function unzip(archive: Buffer): readonly ArchivedFile[] {
  const end = archive.length - 22
  if (end < 0 || archive.readUInt32LE(end) !== END) throw new Error('the archive has no directory at its end')
  const files: ArchivedFile[] = []
  let at = archive.readUInt32LE(end + 16)
  for (let left = archive.readUInt16LE(end + 10); left > 0; left--) {
    if (archive.readUInt32LE(at) !== CENTRAL) throw new Error(`the directory of the archive is damaged at byte ${at}`)
    const nameLength = archive.readUInt16LE(at + 28)
    const path = archive.toString('utf8', at + 46, at + 46 + nameLength)
    const start = archive.readUInt32LE(at + 42) + 30 + nameLength
    const content = inflateRawSync(archive.subarray(start, start + archive.readUInt32LE(at + 20)))
    if (crc32(content) !== archive.readUInt32LE(at + 16)) throw new Error(`${path}: the checksum is wrong`)
    files.push({ path, content })
    at += 46 + nameLength
  }
  return files
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

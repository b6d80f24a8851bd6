// Keeps the public surface of every published package in view: packages/*/api/*.api.md has the declarations of each entry, and this fails
// when the built declarations differ from them. `--update` writes them anew (`npm run api`). Build first: it reads dist.
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

import type { ExtractorMessage, IConfigFile } from '@microsoft/api-extractor'
import { CompilerState, Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor'

const root = join(import.meta.dirname, '../..')
const update = process.argv.includes('--update')
const temporary = mkdtempSync(join(tmpdir(), 'signalbox-api-'))

interface Manifest {
  readonly name: string
  readonly private?: boolean
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>
}

/** An entry of a published package. */
interface Entry {
  readonly specifier: string
  readonly folder: string
  /** The entry's built declarations. */
  readonly types: string
  /** The report's file in the package's folder `api`. */
  readonly report: string
}

function* entries(): Generator<Entry> {
  for (const path of globSync('{packages,apps}/*/package.json', { cwd: root }).toSorted()) {
    const folder = join(root, dirname(path))
    const manifest: Manifest = JSON.parse(readFileSync(join(root, path), 'utf8'))
    if (manifest.private === true) continue
    for (const [subpath, target] of Object.entries(manifest.exports)) {
      // The internal entry is not public: it has no report.
      if (typeof target === 'string' || subpath === './internal') continue
      yield {
        specifier: join(manifest.name, subpath),
        folder,
        types: join(folder, target.types),
        report: `${subpath === '.' ? 'index' : subpath.slice(2)}.api.md`,
      }
    }
  }
}

function configOf({ folder, types, report }: Entry): ExtractorConfig {
  const silent = { logLevel: ExtractorLogLevel.None }
  const configObject: IConfigFile = {
    projectFolder: folder,
    mainEntryPointFilePath: types,
    newlineKind: 'lf',
    compiler: {
      overrideTsconfig: {
        compilerOptions: {
          target: 'es2024',
          lib: ['es2024', 'esnext.disposable'],
          module: 'nodenext',
          types: ['node'],
          strict: true,
          exactOptionalPropertyTypes: true,
          skipLibCheck: true,
          noEmit: true,
          allowImportingTsExtensions: true,
        },
        files: [types],
      },
    },
    apiReport: {
      enabled: true,
      reportFileName: report,
      reportFolder: join(folder, 'api'),
      reportTempFolder: join(temporary, folder),
    },
    docModel: { enabled: false },
    dtsRollup: { enabled: false },
    tsdocMetadata: { enabled: false },
    messages: {
      extractorMessageReporting: {
        default: silent,
        // The report names types that a declaration uses and that the entry does not export.
        'ae-forgotten-export': { logLevel: ExtractorLogLevel.Warning, addToApiReportFile: true },
      },
      tsdocMessageReporting: { default: silent },
    },
  }
  return ExtractorConfig.prepare({
    configObject,
    configObjectFullPath: undefined,
    packageJsonFullPath: join(folder, 'package.json'),
  })
}

/** Errors are shown; the rest is in the reports. */
function quiet(message: ExtractorMessage): void {
  if (message.logLevel !== ExtractorLogLevel.Error) message.handled = true
}

try {
  const all = [...entries()].map((entry) => ({ entry, config: configOf(entry) }))
  const [first] = all
  if (first === undefined) throw new Error('there is no published package')
  // One compiler for all: each would read the same declarations again.
  const compilerState = CompilerState.create(first.config, {
    additionalEntryPoints: all.map(({ entry }) => entry.types),
  })
  const changed: string[] = []
  for (const { entry, config } of all) {
    mkdirSync(join(entry.folder, 'api'), { recursive: true })
    const { apiReportChanged, errorCount } = Extractor.invoke(config, {
      compilerState,
      localBuild: update,
      messageCallback: quiet,
    })
    if (errorCount > 0) throw new Error(`${entry.specifier}: the declarations could not be read`)
    if (apiReportChanged) changed.push(entry.specifier)
  }
  if (changed.length === 0) {
    console.log(`api: ${all.length} entries are as their reports say`)
  } else if (update) {
    console.log(`api: wrote the reports of ${changed.join(', ')}`)
  } else {
    console.error(
      `api: the surface of ${changed.join(', ')} differs from its report; run \`npm run api\` and commit the reports`,
    )
    process.exitCode = 1
  }
} finally {
  rmSync(temporary, { recursive: true, force: true })
}

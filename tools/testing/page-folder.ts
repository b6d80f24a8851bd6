import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { PageServer } from './shown-session.ts'
import { ROOT } from './shown-session.ts'

const NODE = `exec ${JSON.stringify(process.execPath)} --conditions=@signalbox/source`

/**
 * A folder in which the commands of a page run as those of a reader do: `signalbox` is the command line of this
 * workspace, and `npm start` starts a server on free ports and stops it when it is ready.
 */
export class PageFolder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), 'signalbox-page-'))
  /** The folder that the commands run in. */
  readonly work = join(this.path, 'work')
  readonly options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv }

  constructor({ addresses }: Pick<PageServer, 'addresses'>) {
    const bin = join(this.path, 'bin')
    mkdirSync(bin)
    const script = (name: string, text: string): void =>
      writeFileSync(join(bin, name), `#!/bin/bash\n${text}\n`, { mode: 0o755 })
    script('signalbox', `${NODE} ${ROOT}/apps/server/scripts/start.js "$@"`)
    script('node', `exec ${JSON.stringify(process.execPath)} "$@"`)
    script('npx', 'exec "$@"')
    script(
      'npm',
      `while [ "$1" != start ]; do shift; done; shift; [ "$1" != -- ] || shift\n${NODE} ${ROOT}/tools/testing/start-once.ts "$@"`,
    )
    mkdirSync(this.work)
    for (const name of ['examples', 'node_modules', 'package.json']) {
      symlinkSync(join(ROOT, name), join(this.work, name))
    }
    const { PATH = '', NODE_COMPILE_CACHE } = process.env
    for (const folder of ['backups', 'var/lib']) mkdirSync(join(this.path, folder), { recursive: true })
    this.options = {
      cwd: this.work,
      env: {
        PATH: `${bin}:${PATH}`,
        HOME: this.path,
        SIGNALBOX_URL: addresses.http,
        SIGNALBOX_API_URL: addresses.api,
        TOKEN: 'secret',
        ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }),
      },
    }
  }

  /** Returns the text with the folders of a production server in this folder. */
  here(text: string): string {
    return text.replaceAll(/(?<![\w.])\/(backups|var\/lib)\//g, `${this.path}/$1/`)
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}

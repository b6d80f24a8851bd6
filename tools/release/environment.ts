import { writeFileSync } from 'node:fs'

import type { TemporaryFolder } from '@signalbox/testkit/temporary-folder'
import { run } from './command.ts'

/** What npm and Nx hand down to the commands that they run, and the tokens of real registries. */
const INHERITED = /^(npm_|nx_|NPM_|NX_|INIT_CWD$|NODE_AUTH_TOKEN$|NODE_OPTIONS$)/

/** The caller's environment without the settings of the npm or Nx run that the rehearsal was started from. */
export function ordinaryEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !INHERITED.test(name)))
}

/**
 * An environment that knows no registry but the given one: the caller's `.npmrc`, with its tokens, is not read,
 * and what is downloaded goes into a cache of the rehearsal.
 */
export function isolatedEnvironment(folder: TemporaryFolder, registry: string): NodeJS.ProcessEnv {
  const userconfig = folder.join('npmrc')
  const { host } = new URL(registry)
  // npm does not publish without a token; the local registry accepts any.
  writeFileSync(
    userconfig,
    `registry=${registry}\n@signalbox:registry=${registry}\n//${host}/:_authToken=rehearsal\nupdate-notifier=false\n`,
  )
  const identity = { NAME: 'Release rehearsal', EMAIL: 'rehearsal@localhost' }
  return {
    ...ordinaryEnvironment(),
    npm_config_userconfig: userconfig,
    // The machine's own settings could send the scope elsewhere.
    npm_config_globalconfig: folder.join('no-global-npmrc'),
    npm_config_registry: registry,
    npm_config_cache: folder.join('npm-cache'),
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    NX_DAEMON: 'false',
    GIT_AUTHOR_NAME: identity.NAME,
    GIT_AUTHOR_EMAIL: identity.EMAIL,
    GIT_COMMITTER_NAME: identity.NAME,
    GIT_COMMITTER_EMAIL: identity.EMAIL,
    // Commits and tags of the rehearsal are not signed.
    GIT_CONFIG_COUNT: '2',
    GIT_CONFIG_KEY_0: 'commit.gpgsign',
    GIT_CONFIG_VALUE_0: 'false',
    GIT_CONFIG_KEY_1: 'tag.gpgsign',
    GIT_CONFIG_VALUE_1: 'false',
  }
}

/** Returns the registry that the caller's npm is configured for. */
export async function configuredRegistry(cwd: string): Promise<string> {
  return (await run('npm', ['config', 'get', 'registry'], { cwd, env: ordinaryEnvironment() })).trim()
}

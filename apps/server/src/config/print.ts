import type { LoadedConfig } from './load.ts'
import { HIDDEN, SETTINGS } from './settings.ts'

/** Addresses may hold a password, which is nobody's business who reads the settings. */
const PASSWORD = /^((?:\w+:\/\/)?[^:@]*):[^@]*@/

/**
 * The effective configuration as a YAML file that `--config` takes, each value with where it came from. Secrets are not
 * shown.
 */
export async function configText({ config, origins }: LoadedConfig): Promise<string> {
  const { Document, isScalar, isSeq } = await import('yaml')
  const servers = config.nats.servers.map((server) => server.replace(PASSWORD, '$1:…@'))
  const document = new Document({ ...config, nats: { ...config.nats, servers } })
  for (const { path, key, schema } of SETTINGS) {
    if (schema.secret && document.getIn(path) !== '') document.setIn(path, HIDDEN)
    const node = document.getIn(path, true)
    if (isSeq(node)) node.flow = true
    if (isScalar(node) || isSeq(node)) node.comment = ` ${origins.get(key)}`
  }
  return document.toString({ lineWidth: 0, flowCollectionPadding: false })
}

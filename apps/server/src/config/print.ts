import { withoutPasswords } from '../engine/engines.ts'
import { derivedDefaults } from './limits.ts'
import type { LoadedConfig } from './load.ts'
import { FILE_FORMS } from './secret-files.ts'
import { HIDDEN, SETTINGS } from './settings.ts'

/**
 * Returns the effective configuration as a YAML file for `--config`, with the source of each value
 * as a comment. Secrets are masked.
 */
export async function configText({ config, origins }: LoadedConfig): Promise<string> {
  const { Document, isScalar, isSeq } = await import('yaml')
  const document = new Document(withoutPasswords(config))
  for (const { path, key, schema } of SETTINGS) {
    // Read from a file, which the next start reads again.
    if (FILE_FORMS.some(({ setting, file }) => setting.key === key && origins.get(file.key) !== 'default')) {
      document.deleteIn(path)
      continue
    }
    if (schema.secret && document.getIn(path) !== '') document.setIn(path, HIDDEN)
    const node = document.getIn(path, true)
    if (isSeq(node)) node.flow = true
    const origin = origins.get(key)
    const derived = origin === 'default' && derivedDefaults().has(key) ? ', derived from the memory' : ''
    if (isScalar(node) || isSeq(node)) node.comment = ` ${origin}${derived}`
  }
  return document.toString({ lineWidth: 0, flowCollectionPadding: false })
}

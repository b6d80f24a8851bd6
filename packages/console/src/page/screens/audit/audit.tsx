import { Empty } from '../../components/feedback.tsx'
import { Page } from '../../components/page.tsx'

export function Audit() {
  return (
    <Page title="Audit">
      <Empty>This screen is not built yet.</Empty>
    </Page>
  )
}

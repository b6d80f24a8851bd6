import { Empty } from '../../components/feedback.tsx'
import { Page } from '../../components/page.tsx'

export function Tools() {
  return (
    <Page title="Tools">
      <Empty>This screen is not built yet.</Empty>
    </Page>
  )
}

import t from 'tap'
import { openMemory } from '../../support/memory-engine.ts'
import { storeSuite } from '../../contracts/store.ts'
import { logSuite } from '../../contracts/store/log.ts'
import { recordChangeSuite } from '../../contracts/store/record-changes.ts'

storeSuite(t, async () => openMemory())

const openLogFirst = async () => openMemory({ logFirst: true })
void t.test('EventLog without transactions across log and records', (t) => logSuite(t, openLogFirst, {}))
void t.test('changes of records without transactions across log and records', (t) =>
	recordChangeSuite(t, openLogFirst, {}),
)

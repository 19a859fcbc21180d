import type { Test } from 'tap'
import type { Engine } from '../../core/store/ports.ts'
import { logSuite } from './store/log.ts'
import { modelSuite } from './store/model.ts'
import { queueSuite } from './store/queue.ts'
import { recordChangeSuite } from './store/record-changes.ts'
import { recordSuite } from './store/records.ts'

export interface StoreSuiteOptions {
	/** Closes an engine and opens it again on its data. Absent if the engine does not persist data. */
	reopen?: (engine: Engine) => Promise<Engine>
}

/** Opens an engine for one test, which closes it. */
export type Open = () => Promise<Engine>

/** Checks that an engine fulfils the contract of core/store/ports.ts. `open` returns an empty engine each time. */
export function storeSuite(t: Test, open: Open, options: StoreSuiteOptions = {}): void {
	void t.test('Store', (t) => recordSuite(t, open, options))
	void t.test('Store against a model', (t) => modelSuite(t, open))
	void t.test('EventLog', (t) => logSuite(t, open, options))
	void t.test('EventLog with changes of records', (t) => recordChangeSuite(t, open, options))
	void t.test('RunQueue', (t) => queueSuite(t, open, options))
}

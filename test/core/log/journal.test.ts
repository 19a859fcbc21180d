/** The priorities of log lines in systemd's journal. A file stands in for the journal's socket. */
import { spawnSync } from 'node:child_process'
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'

const log = new URL('../../../core/log/log.ts', import.meta.url).href
const program = `
import { openLog } from '${log}'
const log = openLog({ level: 'debug', format: 'json' })
log.debug('one')
log.info('two')
log.warn('three')
log.error('four')
`

/** The lines on standard error of a program that logs, with `JOURNAL_STREAM` from the identity of that file. */
function linesOf(t: Test, stream: (id: string) => string): string[] {
	const file = join(t.testdir(), 'stderr')
	const fd = openSync(file, 'w')
	const { dev, ino } = fstatSync(fd, { bigint: true })
	const env = { ...process.env, JOURNAL_STREAM: stream(`${dev}:${ino}`) }
	spawnSync(process.execPath, ['--input-type=module', '--eval', program], { env, stdio: ['ignore', 'ignore', fd] })
	closeSync(fd)
	return readFileSync(file, 'utf8').trimEnd().split('\n')
}

void t.test('lines for the journal begin with their priority', (t) => {
	const lines = linesOf(t, (id) => id)
	t.strictSame(
		lines.map((line) => line.slice(0, 3)),
		['<7>', '<6>', '<4>', '<3>'],
	)
	t.match(JSON.parse(lines[2]?.slice(3) ?? ''), { level: 40, msg: 'three' })
	t.end()
})

void t.test('other streams get no priority, even if the parent process logs to the journal', (t) => {
	for (const line of linesOf(t, () => '1:2')) t.match(JSON.parse(line), { level: Number })
	t.end()
})

/** Lines of the log while standard error accepts no more. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import t from 'tap'
import type { Test } from 'tap'
import { canMount, smallDisk } from '../../support/small-disk.ts'
import { eventually } from '../../support/wait.ts'

const MEBI = 1024 * 1024
const COUNT = 3_000
const log = new URL('../../../core/log/log.ts', import.meta.url).href
/** Logs 3 MiB, says so on standard output, and ends once standard input does. */
const program = `
import { openLog } from '${log}'
const log = openLog({ level: 'info', format: 'json' })
for (let n = 0; n < ${COUNT}; n++) log.info({ n }, 'x'.repeat(1000))
process.stdin.on('end', () => process.exit()).resume()
console.log('logged')
`

/** Settles once it has logged. */
async function start(t: Test, stderr: 'pipe' | number): Promise<ChildProcess> {
	const args = ['--input-type=module', '--eval', program]
	const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', stderr] })
	t.teardown(() => child.kill())
	await once(child.stdout as Readable, 'data')
	return child
}

async function ended(child: ChildProcess): Promise<void> {
	const closed = once(child, 'close')
	child.stdin?.end()
	await closed
}

/** The lines are whole and in order, begin with the first, and one line counts those that are missing. */
function check(t: Test, output: string, code: string): void {
	const lines = output
		.trimEnd()
		.split('\n')
		.map((line) => JSON.parse(line) as { n?: number; level: number; msg: string; code?: string })
	const notice = lines.pop()
	t.strictSame(
		lines.map(({ n }) => n),
		lines.map((_, at) => at),
	)
	t.ok(output.length > MEBI, 'up to 1 MiB waits')
	t.ok(lines.length < COUNT, 'the rest is dropped')
	const missing = COUNT - lines.length
	t.match(notice, { level: 40, code, msg: `${missing} lines of the log are missing: standard error accepted no more` })
}

void t.test('a pipe that nobody reads does not stop the program', async (t) => {
	const child = await start(t, 'pipe')
	let output = ''
	child.stderr?.on('data', (data: Buffer) => (output += data.toString()))
	await eventually(
		() => output,
		(so_far) => so_far.includes('are missing'),
	)
	await ended(child)
	check(t, output, 'EAGAIN')
})

void t.test('logging continues once a full disk has space again', { skip: !canMount && 'needs a mount' }, async (t) => {
	const disk = smallDisk(t, '4m')
	const file = join(disk, 'log')
	writeFileSync(join(disk, 'filler'), Buffer.alloc(3.75 * MEBI))
	const fd = openSync(file, 'a')
	const child = await start(t, fd)
	closeSync(fd)
	rmSync(join(disk, 'filler'))
	await eventually(
		() => readFileSync(file, 'utf8'),
		(so_far) => so_far.includes('are missing'),
	)
	await ended(child)
	check(t, readFileSync(file, 'utf8'), 'ENOSPC')
})

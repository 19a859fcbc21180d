/**
 * `npm run release` in a temporary clone: its refusals, and with SVC_TEST_RELEASE=1 a complete release, which takes a minute and needs
 * the package registry.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { testFolder } from '../support/folder.ts'
import { cloneOf } from './prepare.ts'
import { git } from './run.ts'
import { Refused } from './refused.ts'
import { nextVersion } from './version.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const temporary = realpathSync(testFolder(t))
const isClone = existsSync(join(root, '.git'))

/** Runs a script in the clone. Returns its exit code and its output. */
async function runScript(clone: string, file: string, ...args: string[]): Promise<{ code: number; text: string }> {
	try {
		const { stdout, stderr } = await promisify(execFile)(process.execPath, [file, ...args], { cwd: clone })
		return { code: 0, text: stdout + stderr }
	} catch (error) {
		const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
		return { code, text: stdout + stderr }
	}
}

function edit(clone: string, name: string, from: string | RegExp, to: string): void {
	const file = join(clone, name)
	const text = readFileSync(file, 'utf8')
	const changed = text.replace(from, to)
	if (changed === text) throw new Error(`${name} has no ${String(from)}`)
	writeFileSync(file, changed)
}

/** A temporary clone on the branch main, with a made-up author. */
function scratch(name: string): string {
	const clone = join(temporary, name)
	cloneOf(root, clone, { 'user.name': 'Test', 'user.email': 'test@example.com' })
	git(clone, 'checkout', '--quiet', '-B', 'main')
	return clone
}

function commit(clone: string): void {
	git(clone, 'commit', '--quiet', '--all', '--message', 'Change it')
}

void t.test('a refusal states what to do', { skip: !isClone }, async (t) => {
	const clone = scratch('refused')
	const release = (...words: string[]) => runScript(clone, 'test/release/main.ts', ...words)
	const refused = async (word: string, message: RegExp): Promise<void> => {
		const { code, text } = await release(word)
		t.equal(code, 1, text)
		t.match(text, message)
	}
	for (const words of [[], ['medium'], ['minor', 'patch']])
		t.match(await release(...words), { code: 2, text: /^usage: / })

	const breaking = '## [Unreleased]\n\n### Breaking changes\n\n- **Events.** One went.\n\n## [0.0.1]\n'
	writeFileSync(join(clone, 'CHANGELOG.md'), breaking)
	await refused('minor', /files are changed or new; commit or remove them:\n M CHANGELOG\.md/)
	commit(clone)
	await refused('patch', /breaking changes.*at least a minor release: npm run release -- minor/)
	await refused('minor', /npm test has not passed for this commit/)

	await runScript(clone, 'test/release/passed.ts')
	edit(clone, 'CHANGELOG.md', 'One went.', 'Another one went.')
	commit(clone)
	await refused('minor', /npm test has not passed for this commit/)
	edit(clone, 'core/store/format.ts', /formatSince = '[^']+'/, "formatSince = '99.0.0'")
	commit(clone)
	await refused('minor', /99\.0\.0 is the first version that reads the format.*correct formatSince/)
	writeFileSync(join(clone, 'CHANGELOG.md'), '# Changelog\n\n## [Unreleased]\n\n## [0.0.1]\n\n- Something\n')
	commit(clone)
	await refused('minor', /\[Unreleased\] of CHANGELOG\.md has no entry/)
	const { version } = JSON.parse(readFileSync(join(clone, 'package.json'), 'utf8')) as { version: string }
	git(clone, 'tag', `v${nextVersion(version, 'minor')}`)
	await refused('minor', /there is a tag v/)
	t.notOk(existsSync(join(clone, 'releases')))
})

void t.test('a commit counts as tested only if the tree has no changes', { skip: !isClone }, async (t) => {
	const clone = scratch('tested')
	const recorded = (): string | null => {
		const file = join(clone, '.git/svc-tests-passed')
		return existsSync(file) ? readFileSync(file, 'utf8') : null
	}
	writeFileSync(join(clone, 'new.txt'), '')
	t.equal((await runScript(clone, 'test/release/passed.ts')).code, 0)
	t.equal(recorded(), null)
	rmSync(join(clone, 'new.txt'))
	await runScript(clone, 'test/release/passed.ts')
	t.equal(recorded(), git(clone, 'rev-parse', 'HEAD^{tree}'))
})

void t.test('each step determines the next version', (t) => {
	t.equal(nextVersion('0.1.9', 'patch'), '0.1.10')
	t.equal(nextVersion('0.1.9', 'minor'), '0.2.0')
	t.equal(nextVersion('0.1.9', 'major'), '1.0.0')
	t.throws(
		() => nextVersion('0.1', 'minor'),
		new Refused('package.json has the version "0.1"; write MAJOR.MINOR.PATCH'),
	)
	t.end()
})

const isComplete = process.env.SVC_TEST_RELEASE === '1'
// The limit of this file, which is 30 s by default.
if (isComplete) t.setTimeout(600_000)
void t.test(
	'a dry run leaves no changes, and a release is complete',
	{ skip: !isComplete || !isClone, timeout: 600_000 },
	async (t) => {
		const clone = scratch('complete')
		await runScript(clone, 'test/release/passed.ts')
		const before = git(clone, 'rev-parse', 'HEAD')
		const { version } = JSON.parse(readFileSync(join(clone, 'package.json'), 'utf8')) as { version: string }
		const next = nextVersion(version, 'minor')
		const dry = await runScript(clone, 'test/release/main.ts', 'minor')
		t.equal(dry.code, 0, dry.text)
		t.match(dry.text, /has the digest [0-9a-f]{64} in both builds/)
		t.match(dry.text, /A home of 0\.1\.0 opens in/)
		t.match(dry.text, /Nothing was changed; make it with --yes/)
		t.equal(git(clone, 'rev-parse', 'HEAD'), before)
		t.equal(git(clone, 'status', '--porcelain'), '')
		t.equal(git(clone, 'tag', '--list', `v${next}`), '')

		const made = await runScript(clone, 'test/release/main.ts', 'minor', '--yes')
		t.equal(made.code, 0, made.text)
		t.equal(git(clone, 'rev-parse', 'HEAD~1'), before)
		t.equal(git(clone, 'rev-parse', `v${next}^{commit}`), git(clone, 'rev-parse', 'HEAD'))
		const folder = join(clone, 'releases', next)
		t.strictSame(
			readdirSync(folder).toSorted(),
			['SHA256SUMS', 'svc-gateway.cdx.json', `svc-gateway-${next}.tgz`].toSorted(),
		)
		for (const line of readFileSync(join(folder, 'SHA256SUMS'), 'utf8').trimEnd().split('\n')) {
			const [sum, name = ''] = line.split('  ')
			t.equal(
				createHash('sha256')
					.update(readFileSync(join(folder, name)))
					.digest('hex'),
				sum,
				name,
			)
		}
		const reference = JSON.parse(readFileSync(join(clone, 'docs/openapi.json'), 'utf8')) as {
			info: { version: string }
		}
		t.equal(reference.info.version, next, 'the version in the API document')
		const bill = JSON.parse(readFileSync(join(folder, 'svc-gateway.cdx.json'), 'utf8')) as {
			components: { name: string }[]
		}
		t.ok(bill.components.some(({ name }) => name === 'lmdb'))
		t.notOk(bill.components.some(({ name }) => name === 'tap'))
		t.match(
			readFileSync(join(clone, 'CHANGELOG.md'), 'utf8'),
			new RegExp(`## \\[Unreleased\\]\n\n## \\[${next}\\] - 20`),
		)
	},
)

/** svc skills: an approval applies to exactly the files that were shown. */
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { listenOnLoopback } from '../../support/loopback.ts'
import { follow } from '../../support/runs.ts'
import { programText, skillText } from '../../support/skills.ts'
import { svcFor } from '../../support/cli.ts'

const gateway = await startGateway()
t.teardown(() => gateway.stop())
const svc = svcFor(gateway)
for (const name of ['ada', 'bob', 'eve', 'kim', 'lea']) await gateway.request('POST', '/v1/agents', { body: { name } })

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')
const install = async (agent: string, input: string): Promise<string> => {
	const { code, stderr, json } = await svc(['skills', 'install', agent, '-', '--json'], { input })
	if (code !== 0) throw new Error(stderr)
	return json().id
}
const activeOf = async (agent: string): Promise<string[]> =>
	(await svc(['skills', 'list', agent, '--json']))
		.json()
		.filter(({ status }: { status: string }) => status === 'active')
		.map(({ id }: { id: string }) => id)

void t.test('skills are installed from a file, a folder, an address or standard input', async (t) => {
	const cwd = t.testdir()
	mkdirSync(join(cwd, 'weather'))
	const text = `\uFEFF${skillText('weather', 'Look out of the window. ☔')}`
	writeFileSync(join(cwd, 'weather/SKILL.md'), text)
	const folder = await svc(['skills', 'install', 'ada', 'weather'], { cwd })
	t.match(folder, { code: 0, stdout: /Installed weather into quarantine/ })
	writeFileSync(join(cwd, 'weather/notes.txt'), 'no skill')
	const [, id = ''] = /id: (\S+)/.exec(folder.stdout) ?? []
	t.match(folder.stderr, `svc skills review ada ${id}`)
	t.equal((await svc(['skills', 'review', 'ada', id, '--json'])).json().digest, digestOf(text), 'byte for byte')

	const server = createServer((_, response) => response.setHeader('content-type', 'text/markdown').end(text))
	const { url: base, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	const url = `${base}/SKILL.md`
	const installed = await svc(['skills', 'install', 'ada', url, '--json'])
	t.match((await svc(['skills', 'review', 'ada', installed.json().id])).stdout, `source:    ${url}`)
	t.equal((await svc(['skills', 'install', 'ada', 'weather/SKILL.md'], { cwd })).code, 0)
	await install('ada', text)
	t.equal((await svc(['skills', 'list', 'ada', '--json'])).json().length, 4)

	for (const [source, code, message] of [
		['nothing.md', 4, /nothing\.md does not exist/],
		['empty', 4, /there is no SKILL\.md/],
		['weather/notes.txt', 2, /front matter/],
		['latin1.md', 2, /not text in UTF-8/],
		['large.md', 2, /more than 2 MiB/],
	] as const) {
		if (source === 'empty') mkdirSync(join(cwd, source))
		if (source === 'latin1.md') writeFileSync(join(cwd, source), Buffer.from([0x2d, 0xe9, 0x0a]))
		if (source === 'large.md') writeFileSync(join(cwd, source), 'x'.repeat(2 * 1024 * 1024 + 1))
		t.match(await svc(['skills', 'install', 'ada', source], { cwd }), { code, stderr: message }, source)
	}
	t.equal((await svc(['skills', 'install', 'nobody', 'weather'], { cwd })).code, 4)
	t.match(await svc(['skills', 'remove', 'ada', 'weather', '-y']), {
		code: 2,
		stderr: /4 have the name "weather"; give an id/,
	})
	t.equal((await svc(['skills', 'remove', 'ada', id, '--yes'])).code, 0)
	t.match(await svc(['skills', 'remove', 'ada', installed.json().id]), { code: 2, stderr: /--yes/ })
	t.equal((await svc(['skills', 'list', 'ada', '--json'])).json().length, 3)
})

void t.test('--path selects one of several skills, --all installs all of them, and show prints files', async (t) => {
	const cwd = t.testdir({
		collection: {
			rain: {
				'SKILL.md': skillText('rain', 'Read notes/wet.md.'),
				notes: { 'wet.md': 'Take an \u001b[2Jumbrella.\n' },
			},
			sun: { 'SKILL.md': skillText('sun', 'Take a hat.') },
		},
	})
	const several = await svc(['skills', 'install', 'lea', 'collection'], { cwd })
	t.match(several, { code: 2, stderr: /rain/ })
	t.match(several.stderr, /sun/)
	const choice = /collection has several skills; select one with --path, or install all with --all: rain, sun/
	t.match(several.stderr, choice)
	t.strictSame((await svc(['skills', 'list', 'lea', '--json'])).json(), [], 'nothing is installed')
	const wrong = await svc(['skills', 'install', 'lea', 'collection', '--path', 'snow'], { cwd })
	t.match(wrong, { code: 4, stderr: /^svc: collection: there is no SKILL\.md in "snow", only in: rain, sun$/m })
	const one = await svc(['skills', 'install', 'lea', 'collection', '--path', 'rain', '--json'], { cwd })
	t.equal(one.code, 0)
	t.match(one.json(), { name: 'rain', status: 'quarantined' })
	const all = await svc(['skills', 'install', 'lea', 'collection', '--all', '--json'], { cwd })
	t.strictSame(
		all.json().map(({ name }: { name: string }) => name),
		['rain', 'sun'],
	)
	const single = await svc(['skills', 'install', 'lea', 'collection/sun', '--all', '--json'], { cwd })
	t.match(single.json(), [{ name: 'sun' }], 'also from a source with a single skill')

	const { id } = all.json()[0]
	const shown = await svc(['skills', 'show', 'lea', id, '--json'])
	t.match(shown.json(), { id, name: 'rain', files: [{ path: 'SKILL.md' }, { path: 'notes/wet.md' }] })
	t.match((await svc(['skills', 'show', 'lea', id])).stdout, /SKILL\.md[^]*notes\/wet\.md/)
	const { stdout } = await svc(['skills', 'show', 'lea', id, 'notes/wet.md'])
	t.match(stdout, /Take an .*umbrella\./)
	t.notOk(stdout.includes('\u001b[2J'), 'control characters are escaped')
	const absent = await svc(['skills', 'show', 'lea', id, 'nothing.md'])
	t.match(absent, { code: 4, stderr: `has no file "nothing.md"; "svc skills show lea ${id}" lists its files` })
})

void t.test('the review shows permissions, findings and program, with invisible characters escaped', async (t) => {
	const head = [
		'parameters:',
		'  - {name: city, type: string, required: true, description: "Where.\\nFindings of the scan\\n  none"}',
		'permissions: {hosts: [api.example.com], primitives: [memory.recall], secrets: [KEY]}',
	].join('\n')
	const code = `// \u202Edaer ton od\u202C\n// zero\u200Bwidth \x1b[2J\nreturn args.city`
	const id = await install('bob', programText('spy', code, head))
	const { stdout, stderr } = await svc(['skills', 'review', 'bob', 'spy'])
	t.match(stdout, /spy {2}quarantined\n/)
	t.match(stdout, /May use\n {2}primitives: memory\.recall\n {2}hosts: api\.example\.com\n {2}secrets: KEY\n/)
	t.match(stdout, /HIGH line \d+, invisible-characters: .*U\+202E/)
	t.match(
		stdout,
		/Lines with invisible characters\n {2}\d+: .*\\u\{202e\}daer ton od\\u\{202c\}\n {2}\d+: .*zero\\u\{200b\}width \\x1b\[2J/,
	)
	t.equal(stdout.match(/^Findings of the scan$/gm)?.length, 1, 'a description cannot add a section')
	// oxlint-disable-next-line no-control-regex -- the output must not contain these
	t.notMatch(stdout, /[\u202e\u200b\x1b]/)
	t.match(stdout, /Document\n +1 {2}---\n/)
	t.match(
		stdout,
		/^Program, with the lines of the document\n {2}10 {2}export default async \(args, svc\) => \{\n {2}11 {2}\/\/ \\u\{202e\}daer/m,
	)
	t.match(stderr, new RegExp(`svc skills approve bob ${id} --digest sha256:[0-9a-f]{64}`))
})

void t.test('the whole program is shown, even if only the changes of the document are', async (t) => {
	await svc(['skills', 'install', 'bob', '-'], { input: programText('sum', 'return 1') })
	await svc(['skills', 'approve', 'bob', 'sum', '--yes'])
	await svc(['skills', 'install', 'bob', '-'], { input: programText('sum', 'return 2') })
	const { stdout } = await svc(['skills', 'review', 'bob', 'sum'])
	t.match(stdout, /^Program, with the lines of the document\n {2}7 .*\n {2}8 {2}return 2\n {2}9 {2}\}$/m)
	const { stdout: shown } = await svc(['skills', 'approve', 'bob', 'sum', '--yes'])
	t.match(shown, /^Program, with the lines of the document$/m)
	await svc(['skills', 'install', 'bob', '-'], { input: skillText('text', 'Be kind.') })
	t.notMatch((await svc(['skills', 'review', 'bob', 'text'])).stdout, /^Program/m)
})

void t.test('approve shows the skill, asks, and sends the digest of what it showed', async (t) => {
	const first = await install('eve', skillText('task', 'Do one thing.\nThen rest.'))
	t.match(await svc(['skills', 'approve', 'eve', 'task']), { code: 2, stderr: /--digest/, stdout: '' })
	t.match(await svc(['skills', 'approve', 'eve', 'task', '--json']), { code: 2, stderr: /--digest/ })
	const no = await svc(['skills', 'approve', 'eve', 'task'], {
		person: [['Approve task for eve, as shown above?', 'n']],
	})
	t.match(no, { code: 1, stdout: /Do one thing\./ })
	t.strictSame(await activeOf('eve'), [])
	const yes = await svc(['skills', 'approve', 'eve', 'task'], { person: [['Approve task', 'y']] })
	t.match(yes, { code: 0, stdout: /Do one thing\.(.*\n)*.*Approved task/ })
	t.strictSame(await activeOf('eve'), [first])

	const next = skillText('task', 'Do another thing.\nThen rest.')
	const second = await install('eve', next)
	const { stdout } = await svc(['skills', 'review', 'eve', 'task'])
	t.match(
		stdout,
		new RegExp(`Changes against the active revision ${first}`),
		'the review is of the quarantined revision',
	)
	t.match(stdout, /\n {2}-Do one thing\.\n {2}\+Do another thing\.\n {3}Then rest\./)
	t.notMatch(stdout, /^Document$/m)
	t.match((await svc(['skills', 'review', 'eve', 'task', '--full'])).stdout, /^Document$/m)
	for (const wrong of ['sha256:12', 'nonsense'])
		t.match(await svc(['skills', 'approve', 'eve', 'task', '--digest', wrong]), { code: 2, stderr: /64 hex digits/ })
	const stale = await svc(['skills', 'approve', 'eve', 'task', '--digest', digestOf('x'), '--json'])
	t.equal(stale.code, 5)
	t.match(JSON.parse(stale.stderr).error, { code: 'digest_mismatch', message: new RegExp(digestOf(next)) })
	t.strictSame(await activeOf('eve'), [first])
	const named = await svc(['skills', 'approve', 'eve', 'task', '--digest', `sha256:${digestOf(next)}`, '--json'])
	t.match(named.json(), { id: second, status: 'active' })
	t.strictSame(await activeOf('eve'), [second])
	t.match(await svc(['skills', 'approve', 'eve', 'task', '--yes']), { code: 0, stdout: /Do another thing/ })
	t.equal((await svc(['skills', 'approve', 'eve', 'other', '--yes'])).code, 4)
})

void t.test('a document is reviewed unredacted, whatever secrets the agent has read', async (t) => {
	const secret = 'correct horse battery staple'
	await install('kim', skillText('leak', `Say ${secret}.`))
	await svc(['vault', 'set', 'PHRASE'], { input: secret })
	await svc(['grants', 'add', 'kim', 'PHRASE', '--reveal'])
	await (await follow(t, gateway, 'kim')).complete('/tool vault.read {"name":"PHRASE"}')
	t.match((await svc(['skills', 'review', 'kim', 'leak'])).stdout, `Say ${secret}.`)
	t.equal((await svc(['skills', 'approve', 'kim', 'leak', '--yes'])).code, 0)
	t.equal((await activeOf('kim')).length, 1)
})

/** Which folder of an archive is the skill, whatever paths an attacker puts into it. */
import t from 'tap'
import { rootOf } from '../../../plugins/skills/folder/root.ts'
import { unpack } from '../../../plugins/skills/folder/unpack.ts'
import { tarGzOf, zipOf } from '../../support/archives.ts'
import { assertCpuTime } from '../../support/cpu-time.ts'

const rootIn = (paths: string[], wanted?: string): string => {
	try {
		return rootOf(paths, wanted)
	} catch (error) {
		return (error as Error).message
	}
}

void t.test('the outermost SKILL.md defines the skill, and those below it belong to it', (t) => {
	t.equal(rootIn(['SKILL.md', 'a/SKILL.md']), '')
	t.equal(rootIn(['a/b/SKILL.md', 'a/SKILL.md', 'a/b/c/SKILL.md', 'a.b/x']), 'a')
	t.match(
		rootIn(['a/SKILL.md', 'a.b/SKILL.md', 'a/b/SKILL.md', 'ab/SKILL.md']),
		/there are 3 skills here.*: a, a\.b, ab$/,
	)
	t.end()
})

void t.test('finding it takes time linear in the length of the paths', async (t) => {
	const deep = (count: number, depth: number) =>
		Array.from({ length: count }, (_, at) => `${at}/${'a/'.repeat(depth)}SKILL.md`)
	const [long, short] = [deep(50, 16_000), deep(8_000, 100)]
	await assertCpuTime(t, 'deep folders', {
		work: () => rootIn(long),
		reference: () => rootIn(short),
		times: 4,
		floor: 10,
	})
})

void t.test('an archive with a path that is too long for a file system is refused', async (t) => {
	const files = [
		{ name: 'skill/SKILL.md', content: '---\nname: a\ndescription: b\n---\nc' },
		{ name: `other/${'a/'.repeat(600)}b` },
	]
	for (const archive of [zipOf(files), tarGzOf(files)])
		await t.rejects(unpack(archive), { code: 'skill_invalid', message: /1000 characters/ })
})

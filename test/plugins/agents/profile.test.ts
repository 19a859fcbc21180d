/** Concurrent writes of one profile. */
import t from 'tap'
import { openRedactor } from '../../../core/redactor/redactor.ts'
import { profilesOf } from '../../../plugins/profile/profiles.ts'
import { openMemory } from '../../support/memory-engine.ts'

const ada = { name: 'ada', uid: 'u1' }

void t.test('only one of several concurrent writes of the same text changes the profile', async (t) => {
	const profiles = profilesOf({ store: openMemory().store, redactor: openRedactor() })
	const written = await Promise.all([1, 2, 3].map(() => profiles.replace(ada, 'Likes tea.')))
	t.strictSame(
		written.map(({ profile }) => profile.version),
		[1, 1, 1],
	)
	t.equal(written.filter(({ isChanged }) => isChanged).length, 1)
	t.equal((await profiles.versions(ada)).length, 1)
	t.match(await profiles.replace(ada, ' Likes tea. '), { isChanged: false })
	t.match(await profiles.replace(ada, 'Likes coffee.'), { isChanged: true, profile: { version: 2 } })
})

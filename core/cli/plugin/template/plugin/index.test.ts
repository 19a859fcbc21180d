/** Tests the plugin in a real gateway, which `startPlugin` starts in this process: `svc plugins test`. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startPlugin } from 'svc-gateway/testing'

test('greets by name', async () => {
	await using plugin = await startPlugin(import.meta.dirname, { greeting: 'Good morning' })
	assert.equal(await plugin.tool('new_plugin.greet', { name: 'Ann' }), 'Good morning, Ann!')
})

test('says what is missing', async () => {
	await using plugin = await startPlugin(import.meta.dirname)
	await assert.rejects(plugin.tool('new_plugin.greet'), /name must be text/)
})

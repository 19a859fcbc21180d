/** Words and patterns that a skill rarely needs and an attack often uses. */
import type { Finding } from './contract.ts'

interface Phrase extends Pick<Finding, 'rule' | 'severity' | 'message'> {
	/** Has the flag g. Applied to the text without invisible characters, and with look-alike forms normalized. */
	pattern: RegExp
}

/** Between two words of a phrase: white space, and characters of Markdown. */
const gap = '[\\s>*_~`"\'-]{1,12}'
/** A few words between two words of a phrase. */
const few = '[^.!?\\n]{0,60}?'

const words = (text: string): string => text.replaceAll(' ', gap).replaceAll('…', few)
const anyOf = (...texts: string[]): RegExp => new RegExp(texts.map(words).join('|'), 'gim')
/** The same for commands: words separated by spaces. */
const anyCommand = (...texts: string[]): RegExp =>
	new RegExp(texts.map((text) => text.replaceAll(' ', '[ \\t]{1,8}')).join('|'), 'gi')

export const phrases: readonly Phrase[] = [
	{
		rule: 'prompt-injection',
		severity: 'high',
		message: 'Tells the model to ignore its other instructions.',
		pattern: anyOf(
			'\\b(?:ignore|disregard|forget|override|bypass|drop) (?:all |any |every |the |your |these |those |of ){0,4}(?:previous|prior|above|earlier|preceding|other|existing|former|system|safety) (?:instructions?|prompts?|rules|messages|directions|guidelines|context)',
			'\\b(?:ignora|olvida|omite)… (?:instrucciones|reglas|indicaciones)',
			'\\b(?:ignore[zr]?|oublie[zr]?)… (?:instructions|consignes|règles)',
			'\\b(?:ignoriere|vergiss|missachte)… (?:anweisungen|anleitungen|regeln|vorgaben|befehle)',
			'\\b(?:ignore|esqueça|desconsidere)… (?:instruções|regras)',
			'\\b(?:ignora|dimentica)… (?:istruzioni|regole)',
			'\\b(?:negeer|vergeet)… (?:instructies|regels)',
			'\\b(?:zignoruj|zapomnij)… (?:instrukcje|polecenia|zasady)',
			'(?:игнорируй|игнорируйте|забудь|забудьте)… (?:инструкци|указани|правила)',
			'(?:忽略|无视|忽視|忘记|忘記)[^。\\n]{0,20}(?:指令|指示|说明|說明|规则|規則)',
			'(?:指示|命令|ルール)[^。\\n]{0,12}(?:無視|忘れ)',
			'(?:지시|명령|규칙)[^.\\n]{0,12}(?:무시|잊)',
			'(?:önceki|yukarıdaki)… (?:talimatları|kuralları)… (?:yok say|unut|görmezden)',
			'(?:تجاهل|انس)[^.\\n]{0,40}(?:التعليمات|القواعد)',
		),
	},
	{
		rule: 'prompt-injection',
		severity: 'high',
		message: 'Tells the model to hide something from the person.',
		pattern: anyOf(
			"\\b(?:do not|don't|never|without) (?:tell|telling|inform|informing|mention|mentioning|reveal|revealing|alert|alerting|notify|notifying|show|showing|ask|asking)… (?:user|person|human|operator|owner|anyone|anybody)",
			'\\b(?:secretly|silently|covertly|quietly) (?:send|run|execute|upload|download|install|post|forward|copy|read)',
			'\\b(?:no (?:le )?digas|no informes)… usuario',
			"\\bne… (?:dis|dites|informe|informez) pas… (?:utilisateur|l'utilisateur)",
			'\\b(?:sag|sage|sagen|verrate|erzähle)… (?:benutzer|nutzer|anwender) nicht',
			'(?:不要|别|別)(?:告诉|告訴|通知)[^。\\n]{0,6}(?:用户|用戶|使用者)',
			'ユーザー(?:に|には)[^。\\n]{0,10}(?:言わない|知らせない|伝えない)',
		),
	},
	{
		rule: 'prompt-injection',
		severity: 'medium',
		message: 'Addresses the model with false authority.',
		pattern: anyOf(
			'\\byou are now (?:in |a |an |the )?(?:developer|dan\\b|jailbr|unrestricted|unfiltered|root|admin|god|debug)',
			'\\b(?:new|updated|real|actual|true) (?:system )(?:prompt|instructions?|message)',
			'<\\|(?:im_start|im_end|system|endoftext)[^\\n>]{0,20}\\|?>',
			'<\\/?(?:system|assistant|skill_content|tool_result|function_results?)\\b[^>\\n]{0,80}>',
			'\\[(?:INST|\\/INST|SYSTEM)\\]',
			'^(?:system|assistant)\\s?:',
			'\\b(?:pretend|act) (?:as if|like|as though) (?:you|the user|there) (?:have|has|had|are|is) (?:no |already |approved |permission)',
		),
	},
	{
		rule: 'approval',
		severity: 'high',
		message: 'Mentions approvals, quarantine or permissions of this gateway, which a skill has no reason to do.',
		pattern: anyOf(
			'\\b(?:approve|approved_skills|unquarantine|auto-?approve|whitelist) (?:this |the |all |every |other )?(?:skills?|tools?)\\b',
			'approved_skills',
			'/skills/[^\\s/]{1,80}/approve',
		),
	},
	{
		rule: 'secret-request',
		severity: 'high',
		message: 'Asks for a secret.',
		pattern: anyOf(
			'\\b(?:send|paste|print|reveal|show|give|export|upload|share|enter|provide|include|output|read|dump|collect|exfiltrate|post|copy)… (?:api[\\s_-]?keys?|access[\\s_-]?tokens?|passwords?|passphrases?|credentials?|private keys?|seed phrases?|recovery phrases?|secret keys?|session cookies?|2fa codes?|one-time codes?|mnemonic)\\b',
			'\\b(?:contraseñas?|claves? privadas?|mots? de passe|passwörter|passwort|zugangsdaten|senhas?)\\b',
			'пароль|пароли|密码|密碼|パスワード|비밀번호',
		),
	},
	{
		rule: 'secret-place',
		severity: 'high',
		message: 'Names a place where secrets are usually stored.',
		pattern:
			/~\/\.(?:ssh|aws|gnupg|kube|netrc|npmrc|docker|config\/gcloud|svc)\b|\bid_(?:rsa|ed25519|ecdsa)\b|\/etc\/(?:passwd|shadow)\b|(?:^|[\s'"`/])\.env\b|\bLogin Data\b|\bkeychain(?:-db)?\b|\bwallet\.dat\b|\bMetaMask\b|169\.254\.169\.254|metadata\.google\.internal/gim,
	},
	{
		rule: 'secret-literal',
		severity: 'high',
		message: 'Looks like a secret in plain text; keep it in the vault and declare its name under permissions.secrets.',
		pattern:
			/\bsk-[A-Za-z0-9_-]{20,200}|\bgh[opsur]_[A-Za-z0-9]{30,255}|\bgithub_pat_[A-Za-z0-9_]{30,255}|\bAKIA[0-9A-Z]{16}\b|\bxox[abprs]-[A-Za-z0-9-]{10,200}|\bAIza[0-9A-Za-z_-]{35}|\bsvc_[A-Za-z0-9_-]{43}|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----|\beyJ[A-Za-z0-9_-]{10,500}\.eyJ[A-Za-z0-9_-]{10,2000}\./g,
	},
	{
		rule: 'shell-command',
		severity: 'high',
		message: 'A command that downloads and runs code, destroys data, or opens access.',
		pattern: anyCommand(
			'\\b(?:curl|wget|iwr|invoke-webrequest)\\b[^|\\n]{0,120}\\|\\s{0,4}(?:sudo )?(?:(?:ba|z|da|k|c)?sh|python3?|perl|ruby|node|osascript)\\b',
			'\\b(?:ba|z|da)?sh (?:-c )?["\'<($\\s]{0,6}(?:curl|wget)\\b',
			'\\bbase64 (?:-d|-D|--decode)\\b',
			'\\brm -(?:rf|fr|r -f|f -r)\\b',
			'\\b(?:powershell|pwsh)\\b',
			'\\b(?:invoke-expression|iex)\\b',
			'\\bosascript\\b',
			'\\bxattr -[a-z]{1,4}\\b',
			'\\bmkfs\\b',
			'\\bdd if=',
			'/dev/tcp/',
			'\\bn(?:c|cat|etcat) -[a-z]{0,6}[el]',
			'\\b(?:certutil|bitsadmin|mshta|rundll32|regsvr32)\\b',
			':\\(\\)\\s?\\{\\s?:\\|:',
		),
	},
	{
		rule: 'shell-command',
		severity: 'medium',
		message: 'A shell command. Skills have no shell in this gateway, so someone else would have to run it.',
		pattern: anyCommand(
			'\\bsudo [a-z-]',
			'\\bchmod [0-7+ugoa]',
			'\\bchown [a-z]',
			'\\b(?:curl|wget) [-a-z"\']',
			'\\beval [$"\'(`]',
			'\\b(?:crontab|launchctl|systemctl|schtasks|nohup) [-a-z/]',
			'\\b(?:ssh|scp|rsync) [-a-z]{1,60}[@:]',
			'\\b(?:npx|uvx|pip3? install|npm install|npm i|brew install|apt(?:-get)? install|go install|cargo install) [-@a-z]',
			'\\bexport (?:LD_PRELOAD|NODE_OPTIONS|PATH|PYTHONPATH)=',
		),
	},
	{
		rule: 'encoded-data',
		severity: 'medium',
		message: 'Long encoded data, whose meaning a reader cannot see.',
		pattern:
			/[A-Za-z0-9+/_=-]{64,}|(?:\\x[0-9a-f]{2}){16,}|(?:\\u[0-9a-f]{4}){12,}|(?:%[0-9a-f]{2}){20,}|(?:\b\d{2,3}, ?){32,}|\bdata:[a-z-]{1,20}\/[a-z0-9.+-]{1,40}[;,]/gi,
	},
	{
		rule: 'raw-address',
		severity: 'medium',
		message: 'A numeric address, whose owner a reader cannot see.',
		pattern:
			/\b(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)\b|https?:\/\/\[[0-9a-f:.]{2,45}\]|https?:\/\/(?:0x[0-9a-f]{8}|\d{8,10})\b/gi,
	},
	{
		rule: 'address',
		severity: 'low',
		message: 'An external address; check whether you expect it.',
		pattern: /\b(?:https?|wss?|ftp):\/\/[^\s"'`<>()[\]{}|\\]{1,300}|\bwww\.[a-z0-9-]{1,63}\.[a-z.]{2,20}/gi,
	},
	{
		rule: 'code-from-text',
		severity: 'medium',
		message: 'Runs text as code, which hides what it does from a reader.',
		pattern:
			/\beval\s?\(|\bnew\s{1,4}Function\b|\bFunction\s?\(|\bimport\s?\(|\.constructor\s?\(|\bfromCharCode\b|\batob\s?\(/g,
	},
]

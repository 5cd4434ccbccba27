import { hasFewWords } from '../../../supabase/functions/_services/text/count-words.ts';
import type { Fetched } from '../http/fetch-url.ts';
import { JobError } from '../http/job-error.ts';
import { decodePage } from './decode-page.ts';
import { saysGone } from './gone-words.ts';

/** How many bytes of a page are read to find out what kind of page it is. */
const probe = 200_000;
const captcha =
  /<title>[^<]{0,40}(?:just a moment|attention required|are you (?:a )?(?:robot|human)|security (?:check|verification)|access to this page has been denied)/i;
const captchaParts = /captcha-delivery\.com|id="px-captcha"|\bcf-challenge\b|class="(?:g-recaptcha|h-captcha)"/i;
/** Words of a page that shows nothing but its question. */
const captchaWords =
  /安全验证|安全驗證|人机验证|人機驗證|完成验证|滑动验证|验证您是真人|ロボットではありません|ロボットでないこと|画像認証|로봇이 아닙니다|보안문자|자동입력 방지|вы не робот|я не робот|kein roboter|pas un robot|no soy un robot|non sono un robot|não sou um robô|(?:verify|confirm) (?:that )?you are (?:a )?human|i[’']?a?m not a robot/i;
const mostWordsOfCaptcha = 80;
const captchaPath = /\/(?:captcha|checkpoint\/challenge|sorry\/index)(?:[/?]|$)/i;
const loginPath = /\/(?:authwall|login|log-in|signin|sign-in|uas\/login)(?:[/?]|$)/i;
/** A page that says in a few words that it is gone says little else. */
const mostWordsOfGone = 250;

/** Throws JobError where what was sent in the page's place is no page: a captcha, a log-in, or the news that it is gone. */
export function refuseOtherPages(asked: URL, { url, body, contentType }: Fetched): void {
  const html = decodePage(body.subarray(0, probe), contentType).text;
  const words = textOf(html);
  const few = hasFewWords(words, mostWordsOfGone);
  if (captchaPath.test(url.pathname) || captcha.test(html) || (few && asksForCaptcha(html, words))) {
    throw new JobError('captcha', `${url.href}: the site asks for a captcha, which this scraper does not solve`);
  }
  if (loginPath.test(url.pathname) && !loginPath.test(asked.pathname)) {
    throw new JobError('forbidden', `${asked.href}: the site shows it only to those who log in`);
  }
  if (isFrontPage(url) && !isFrontPage(asked)) {
    throw new JobError('removed', `${asked.href}: the site leads to its front page instead, so the page is gone`);
  }
  if (few && saysGone(words)) throw new JobError('removed', `${asked.href}: the page says that it is gone`);
}

function asksForCaptcha(html: string, words: string): boolean {
  return captchaParts.test(html) || (captchaWords.test(words) && hasFewWords(words, mostWordsOfCaptcha));
}

function isFrontPage({ pathname, search }: URL): boolean {
  return search === '' && /^\/(?:jobs|careers|index\.html?)?\/?$/i.test(pathname);
}

function textOf(html: string): string {
  return html
    .replace(/<(script|style|noscript|template)\b[\s\S]*?<\/\1>/gi, ' ')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
}

-- What has been installed here and when; millrace.engine() tells what is here now.
create table millrace.releases (
  level int constraint releases_pkey primary key,
  release text not null,
  installed_at timestamptz not null default millrace.now()
);
comment on table millrace.releases is
  'One row a release that was installed in this database, or that it was upgraded to.';

insert into millrace.settings (name, value, comment) values
  ('upgrade_patience', '15 seconds',
    'How long an upgrade or uninstall tries to get its locks before it gives up; then nothing has '
    'been changed.');
